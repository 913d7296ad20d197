"""Tests of the package `heda`."""
