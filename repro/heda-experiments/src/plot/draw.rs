//! Draws a figure: panels two in a row, the legend below.

use super::axis::{Ruler, rulers};
use super::{Content, Figure, Panel, Series};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::FontTransform;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const PANEL: (u32, u32) = (620, 420);
const TITLE: u32 = 40;
const LEGEND_LINE: u32 = 26;
const LEFT: i32 = 70;
const RIGHT: i32 = 20;
const TOP: i32 = 34;
const BOTTOM: i32 = 58;
const FAMILY: &str = "sans-serif";

const GREY: RGBColor = RGBColor(90, 90, 90);
const GRID: RGBColor = RGBColor(225, 225, 225);
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(140, 120, 20),
];

/// Why a figure could not be drawn: a defect, since everything is in memory.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw a figure: {0}")]
pub(super) struct DrawError(String);

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for DrawError {
    fn from(error: DrawingAreaErrorKind<E>) -> Self {
        Self(error.to_string())
    }
}

/// The figure as SVG.
pub(super) fn svg(figure: &Figure) -> Result<String, DrawError> {
    let mut text = String::new();
    Canvas::new(figure).draw(SVGBackend::with_string(&mut text, size(figure)))?;
    Ok(text)
}

fn columns(figure: &Figure) -> u32 {
    figure.panels.len().clamp(1, 2) as u32
}

fn size(figure: &Figure) -> (u32, u32) {
    let rows = (figure.panels.len() as u32).div_ceil(columns(figure));
    let legend = legend_lines(figure).len() as u32 * LEGEND_LINE + 12;
    (columns(figure) * PANEL.0, TITLE + rows * PANEL.1 + legend)
}

/// Legend entries by line, as many as fit side by side.
fn legend_lines(figure: &Figure) -> Vec<Vec<(usize, &str)>> {
    let names = figure.legend();
    let longest = names.iter().map(|name| name.chars().count()).max();
    let entry = 50 + 9 * longest.unwrap_or(1) as u32;
    let per_line = (columns(figure) * PANEL.0 / entry).max(1) as usize;
    let entries: Vec<_> = names.into_iter().enumerate().collect();
    entries.chunks(per_line).map(<[_]>::to_vec).collect()
}

/// The figure and the names in its legend.
struct Canvas<'a> {
    figure: &'a Figure,
    legend: Vec<&'a str>,
}

type Area<DB> = DrawingArea<DB, Shift>;

impl<'a> Canvas<'a> {
    fn new(figure: &'a Figure) -> Self {
        Self {
            figure,
            legend: figure.legend(),
        }
    }

    fn draw<DB: DrawingBackend>(&self, backend: DB) -> Result<(), DrawError> {
        let root = backend.into_drawing_area();
        root.fill(&WHITE)?;
        let (width, _) = size(self.figure);
        let middle = width as i32 / 2;
        self.text(
            &root,
            &self.figure.title,
            (middle, 22),
            19,
            BLACK,
            HPos::Center,
        )?;
        for (index, panel) in self.figure.panels.iter().enumerate() {
            let index = index as u32;
            let column = index % columns(self.figure);
            let row = index / columns(self.figure);
            let corner = ((column * PANEL.0) as i32, (TITLE + row * PANEL.1) as i32);
            self.panel(&root, panel, corner)?;
        }
        self.draw_legend(&root)?;
        root.present()?;
        Ok(())
    }

    fn panel<DB: DrawingBackend>(
        &self,
        root: &Area<DB>,
        panel: &Panel,
        corner: (i32, i32),
    ) -> Result<(), DrawError> {
        let (x, y) = rulers(panel);
        let frame = Frame { corner, x, y };
        self.axes(root, panel, &frame)?;
        match &panel.content {
            Content::Lines(series) => {
                let shift = |index: usize| {
                    let middle = panel.dodge * (series.len() as i32 - 1) / 2;
                    panel.dodge * index as i32 - middle
                };
                let mut backwards = series.iter().enumerate().rev();
                backwards.try_for_each(|(n, series)| self.line(root, &frame, series, shift(n)))
            }
            Content::Stacked { series, .. } => {
                (0..series.len()).try_for_each(|index| self.pieces(root, &frame, series, index))
            }
        }
    }

    fn axes<DB: DrawingBackend>(
        &self,
        root: &Area<DB>,
        panel: &Panel,
        frame: &Frame,
    ) -> Result<(), DrawError> {
        let (left, top, right, bottom) = frame.inside();
        for (place, text) in &frame.y.ticks {
            let y = frame.y_pixel(*place);
            self.stroke(root, &[(left, y), (right, y)], GRID, 1)?;
            self.text(root, text, (left - 8, y), 14, GREY, HPos::Right)?;
        }
        let grid = matches!(panel.content, Content::Lines(_));
        for (place, text) in &frame.x.ticks {
            let x = frame.x_pixel(*place);
            if grid {
                self.stroke(root, &[(x, top), (x, bottom)], GRID, 1)?;
            }
            self.text(root, text, (x, bottom + 14), 14, GREY, HPos::Center)?;
        }
        self.stroke(
            root,
            &[(left, top), (left, bottom), (right, bottom)],
            GREY,
            1,
        )?;
        let middle = (left + right) / 2;
        self.text(
            root,
            &panel.title,
            (middle, top - 16),
            16,
            BLACK,
            HPos::Center,
        )?;
        self.text(
            root,
            &panel.x.label,
            (middle, bottom + 38),
            14,
            BLACK,
            HPos::Center,
        )?;
        self.upright(root, &panel.y.label, (left - 54, (top + bottom) / 2))
    }

    fn line<DB: DrawingBackend>(
        &self,
        root: &Area<DB>,
        frame: &Frame,
        series: &Series,
        shift: i32,
    ) -> Result<(), DrawError> {
        let style = self.style_of(&series.name);
        let colour = COLOURS[style % COLOURS.len()];
        let mut pixels = Vec::with_capacity(series.points.len());
        for point in &series.points {
            let Some((x, y)) = frame.pixel(point.x, point.y) else {
                continue;
            };
            pixels.push((x + shift, y));
            self.error_bar(root, frame, point, x + shift, colour)?;
        }
        self.stroke(root, &pixels, colour, 2)?;
        pixels
            .into_iter()
            .try_for_each(|at| self.marker(root, at, style))
    }

    /// The pieces of one series, on top of those before it.
    fn pieces<DB: DrawingBackend>(
        &self,
        root: &Area<DB>,
        frame: &Frame,
        all: &[Series],
        index: usize,
    ) -> Result<(), DrawError> {
        let colour = COLOURS[self.style_of(&all[index].name) % COLOURS.len()];
        for point in &all[index].points {
            let foot: f64 = all[..index].iter().map(|below| below.height(point.x)).sum();
            let ends = frame.y.place(foot).zip(frame.y.place(foot + point.y));
            let Some((foot, head)) = ends else {
                continue;
            };
            let left = frame.x_pixel(point.x - 0.37);
            let right = frame.x_pixel(point.x + 0.37);
            let corners = [(left, frame.y_pixel(head)), (right, frame.y_pixel(foot))];
            root.draw(&Rectangle::new(corners, colour.filled()))?;
        }
        Ok(())
    }

    fn error_bar<DB: DrawingBackend>(
        &self,
        root: &Area<DB>,
        frame: &Frame,
        point: &super::Point,
        x: i32,
        colour: RGBColor,
    ) -> Result<(), DrawError> {
        let low = frame.y.place(point.y - point.spread);
        let (Some(low), Some(high)) = (low, frame.y.place(point.y + point.spread)) else {
            return Ok(());
        };
        if point.spread <= 0.0 {
            return Ok(());
        }
        let (low, high) = (frame.y_pixel(low), frame.y_pixel(high));
        self.stroke(root, &[(x, low), (x, high)], colour, 1)?;
        self.stroke(root, &[(x - 4, low), (x + 4, low)], colour, 1)?;
        self.stroke(root, &[(x - 4, high), (x + 4, high)], colour, 1)
    }

    fn draw_legend<DB: DrawingBackend>(&self, root: &Area<DB>) -> Result<(), DrawError> {
        let (width, height) = size(self.figure);
        let lines = legend_lines(self.figure);
        let bars = |panel: &Panel| matches!(panel.content, Content::Stacked { .. });
        let boxes = self.figure.panels.iter().all(bars);
        let entries = lines.first().map_or(1, Vec::len) as i32;
        let entry = width as i32 / entries;
        for (line, names) in lines.iter().enumerate() {
            let below = (lines.len() - line) as u32 * LEGEND_LINE;
            let y = (height - below) as i32;
            for (place, (style, name)) in names.iter().enumerate() {
                let x = place as i32 * entry + 24;
                self.legend_key(root, (x, y), *style, boxes)?;
                self.text(root, name, (x + 36, y), 14, BLACK, HPos::Left)?;
            }
        }
        Ok(())
    }

    fn legend_key<DB: DrawingBackend>(
        &self,
        root: &Area<DB>,
        (x, y): (i32, i32),
        style: usize,
        boxes: bool,
    ) -> Result<(), DrawError> {
        let colour = COLOURS[style % COLOURS.len()];
        if boxes {
            let corners = [(x + 8, y - 6), (x + 28, y + 6)];
            root.draw(&Rectangle::new(corners, colour.filled()))?;
            return Ok(());
        }
        self.stroke(root, &[(x, y), (x + 30, y)], colour, 2)?;
        self.marker(root, (x + 15, y), style)
    }

    /// Five shapes, so that series differ without colour too.
    fn marker<DB: DrawingBackend>(
        &self,
        root: &Area<DB>,
        (x, y): (i32, i32),
        style: usize,
    ) -> Result<(), DrawError> {
        let fill = COLOURS[style % COLOURS.len()].filled();
        let shape: &[(i32, i32)] = match style % 5 {
            0 => {
                root.draw(&Circle::new((x, y), 4, fill))?;
                return Ok(());
            }
            1 => &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
            2 => &[(0, -5), (5, 4), (-5, 4)],
            3 => &[(0, -6), (6, 0), (0, 6), (-6, 0)],
            _ => &[(0, 5), (5, -4), (-5, -4)],
        };
        let corners = shape.iter().map(|(dx, dy)| (x + dx, y + dy));
        root.draw(&Polygon::new(corners.collect::<Vec<_>>(), fill))?;
        Ok(())
    }

    fn style_of(&self, name: &str) -> usize {
        let place = self.legend.iter().position(|other| *other == name);
        place.unwrap_or(0)
    }

    fn stroke<DB: DrawingBackend>(
        &self,
        root: &Area<DB>,
        points: &[(i32, i32)],
        colour: RGBColor,
        width: u32,
    ) -> Result<(), DrawError> {
        root.draw(&PathElement::new(points, colour.stroke_width(width)))?;
        Ok(())
    }

    fn text<DB: DrawingBackend>(
        &self,
        root: &Area<DB>,
        text: &str,
        at: (i32, i32),
        points: i32,
        colour: RGBColor,
        side: HPos,
    ) -> Result<(), DrawError> {
        let style = (FAMILY, points)
            .into_font()
            .color(&colour)
            .pos(Pos::new(side, VPos::Center));
        root.draw_text(text, &style, at)?;
        Ok(())
    }

    fn upright<DB: DrawingBackend>(
        &self,
        root: &Area<DB>,
        text: &str,
        at: (i32, i32),
    ) -> Result<(), DrawError> {
        let style = (FAMILY, 14)
            .into_font()
            .transform(FontTransform::Rotate270)
            .color(&BLACK)
            .pos(Pos::new(HPos::Center, VPos::Center));
        root.draw_text(text, &style, at)?;
        Ok(())
    }
}

/// Where a panel's axes lie in the drawing.
struct Frame {
    corner: (i32, i32),
    x: Ruler,
    y: Ruler,
}

impl Frame {
    /// Left, top, right and bottom of the plotting area.
    fn inside(&self) -> (i32, i32, i32, i32) {
        let (x, y) = self.corner;
        let (right, bottom) = (x + PANEL.0 as i32 - RIGHT, y + PANEL.1 as i32 - BOTTOM);
        (x + LEFT, y + TOP, right, bottom)
    }

    fn x_pixel(&self, place: f64) -> i32 {
        let (left, _, right, _) = self.inside();
        let share = (place - self.x.start) / (self.x.end - self.x.start);
        left + (share.clamp(0.0, 1.0) * f64::from(right - left)).round() as i32
    }

    fn y_pixel(&self, place: f64) -> i32 {
        let (_, top, _, bottom) = self.inside();
        let share = (place - self.y.start) / (self.y.end - self.y.start);
        bottom - (share.clamp(0.0, 1.0) * f64::from(bottom - top)).round() as i32
    }

    fn pixel(&self, x: f64, y: f64) -> Option<(i32, i32)> {
        let (x, y) = (self.x.place(x)?, self.y.place(y)?);
        Some((self.x_pixel(x), self.y_pixel(y)))
    }
}

#[cfg(test)]
mod tests;
