//! Charts for people: one figure of panels, written as SVG.
//!
//! A figure is described here and drawn in `plot/draw.rs`. Series keep their colour and marker in
//! all panels, the legend stands below. Colours are those of Okabe and Ito, which people with
//! colour-blindness tell apart.

mod axis;
mod draw;

use heda::Error;
use std::path::Path;

/// Several panels under one title.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// Above all panels.
    pub(crate) title: String,
    /// Side by side, two in a row.
    pub(crate) panels: Vec<Panel>,
}

/// One chart.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) content: Content,
    /// Pixels by which each line stands to the right of the one before, so that lines on top of
    /// each other can be seen; 0 for none.
    pub(crate) dodge: i32,
}

/// What a panel shows.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// Lines with markers, the first one on top.
    Lines(Vec<Series>),
    /// Bars: one for each category, in it a piece for each series, the first at the bottom.
    Stacked {
        categories: Vec<String>,
        series: Vec<Series>,
    },
}

/// An axis with its words.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) scale: Scale,
    /// Fixed ends; from the data if absent.
    pub(crate) range: Option<(f64, f64)>,
}

/// How values lie on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    /// Powers of ten; what is not positive is left out.
    Logarithmic,
}

/// Points that belong together.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<Point>,
}

/// A point; in bar charts x is the index of the category.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// Half the length of the error bar; 0 for none.
    pub(crate) spread: f64,
}

impl Axis {
    /// A linear axis that fits the data.
    pub(crate) fn linear(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            scale: Scale::Linear,
            range: None,
        }
    }
}

impl Series {
    /// The height at this place; nothing there is nothing.
    fn height(&self, x: f64) -> f64 {
        let point = self.points.iter().find(|point| point.x == x);
        point.map_or(0.0, |point| point.y)
    }
}

impl Content {
    fn series(&self) -> &[Series] {
        match self {
            Self::Lines(series) | Self::Stacked { series, .. } => series,
        }
    }
}

impl Figure {
    /// Writes `stem.svg`.
    pub(crate) fn write(&self, folder: &Path, stem: &str) -> Result<(), Error> {
        let svg = draw::svg(self).map_err(Error::bug)?;
        heda::files::write_whole(&folder.join(format!("{stem}.svg")), svg.as_bytes())
    }

    /// The names of all series, each once, in order of appearance.
    fn legend(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for series in self.panels.iter().flat_map(|panel| panel.content.series()) {
            if !names.contains(&series.name.as_str()) {
                names.push(&series.name);
            }
        }
        names
    }
}
