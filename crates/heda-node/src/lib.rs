//! Provider daemon and data-user client: identity, wire, policy, ledger.
