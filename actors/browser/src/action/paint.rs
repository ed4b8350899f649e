//! Drawing on a picture: frames, labels and covers, with letters of our own.

use std::io::Cursor;

use super::results::Area;

/// How thick a frame is, in pixels.
const LINE: i64 = 2;

/// Each dot of a letter is so many pixels wide and high.
const DOT: i64 = 2;

/// Letters are 3 dots wide and 5 high, with one dot around.
const LETTER_WIDTH: i64 = 4 * DOT;
const LETTER_HEIGHT: i64 = 5 * DOT;

/// Colours of frames, one after the other, all dark enough for white letters.
const COLOURS: [[u8; 3]; 6] =
    [[200, 30, 30], [20, 90, 200], [20, 120, 40], [150, 30, 150], [170, 80, 0], [0, 110, 120]];

/// What hides a field.
const COVER: [u8; 3] = [60, 60, 60];

const WHITE: [u8; 3] = [255, 255, 255];

/// The letters of a ref, each as five rows of three dots.
fn letter(character: char) -> [u8; 5] {
    match character {
        '0' => [0b111, 0b101, 0b101, 0b101, 0b111],
        '1' => [0b010, 0b110, 0b010, 0b010, 0b111],
        '2' => [0b111, 0b001, 0b111, 0b100, 0b111],
        '3' => [0b111, 0b001, 0b111, 0b001, 0b111],
        '4' => [0b101, 0b101, 0b111, 0b001, 0b001],
        '5' => [0b111, 0b100, 0b111, 0b001, 0b111],
        '6' => [0b111, 0b100, 0b111, 0b101, 0b111],
        '7' => [0b111, 0b001, 0b010, 0b010, 0b010],
        '8' => [0b111, 0b101, 0b111, 0b101, 0b111],
        '9' => [0b111, 0b101, 0b111, 0b001, 0b111],
        'e' => [0b000, 0b111, 0b111, 0b100, 0b111],
        _ => [0; 5],
    }
}

/// A picture that can be drawn on.
///
/// Shape: `height × width × 3` bytes, rows top to bottom: red, green, blue.
pub(super) struct Canvas {
    pixels: Vec<u8>,
    width: u32,
    height: u32,
}

impl Canvas {
    /// The picture of a PNG file; `None` if it is none.
    pub(super) fn decode(file: &[u8]) -> Option<Self> {
        let mut decoder = png::Decoder::new(Cursor::new(file));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().ok()?;
        let mut pixels = vec![0; reader.output_buffer_size()?];
        let info = reader.next_frame(&mut pixels).ok()?;
        pixels.truncate(info.buffer_size());
        let pixels = match info.color_type {
            png::ColorType::Rgb => pixels,
            png::ColorType::Rgba => {
                pixels.chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect()
            }
            png::ColorType::Grayscale => pixels.iter().flat_map(|grey| [*grey; 3]).collect(),
            png::ColorType::GrayscaleAlpha => {
                pixels.chunks_exact(2).flat_map(|pixel| [pixel[0]; 3]).collect()
            }
            png::ColorType::Indexed => return None,
        };
        Some(Self { pixels, width: info.width, height: info.height })
    }

    /// As a PNG file.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().ok()?;
        writer.write_image_data(&self.pixels).ok()?;
        writer.finish().ok()?;
        Some(file)
    }

    pub(super) fn width(&self) -> u32 {
        self.width
    }

    pub(super) fn height(&self) -> u32 {
        self.height
    }

    /// Whether some of it is in the picture.
    pub(super) fn shows(&self, area: Area) -> bool {
        let [left, top, right, bottom] = edges(area);
        right > 0 && bottom > 0 && left < i64::from(self.width) && top < i64::from(self.height)
    }

    /// Hides what is there.
    pub(super) fn cover(&mut self, area: Area) {
        let [left, top, right, bottom] = edges(area);
        self.fill(left, top, right, bottom, COVER);
    }

    /// Frames it, and writes its label at its upper left corner, in the picture wherever that is.
    pub(super) fn frame(&mut self, area: Area, label: &str, index: usize) {
        let [left, top, right, bottom] = edges(area);
        let colour = COLOURS[index % COLOURS.len()];
        self.fill(left, top, right, top + LINE, colour);
        self.fill(left, bottom - LINE, right, bottom, colour);
        self.fill(left, top, left + LINE, bottom, colour);
        self.fill(right - LINE, top, right, bottom, colour);
        let width = LETTER_WIDTH * i64::try_from(label.chars().count()).unwrap_or(0) + DOT;
        let height = LETTER_HEIGHT + 2 * DOT;
        let x = left.min(i64::from(self.width) - width).max(0);
        // Above it, so that what is framed can be read; inside where there is no room.
        let y = if top >= height { top - height } else { top.max(0) };
        self.fill(x, y, x + width, y + height, colour);
        let mut at = x + DOT;
        for character in label.chars() {
            self.write(character, at, y + DOT);
            at += LETTER_WIDTH;
        }
    }

    fn write(&mut self, character: char, x: i64, y: i64) {
        for (row, dots) in (0i64..).zip(letter(character)) {
            for column in 0..3 {
                if dots & (0b100 >> column) != 0 {
                    let (left, top) = (x + column * DOT, y + row * DOT);
                    self.fill(left, top, left + DOT, top + DOT, WHITE);
                }
            }
        }
    }

    fn fill(&mut self, left: i64, top: i64, right: i64, bottom: i64, colour: [u8; 3]) {
        let inside = |from: i64, to: i64, size: u32| {
            let bound = |side: i64| usize::try_from(side.clamp(0, i64::from(size))).unwrap_or(0);
            bound(from)..bound(to)
        };
        let (columns, width) = (inside(left, right, self.width), self.width as usize);
        if columns.is_empty() {
            return;
        }
        for row in inside(top, bottom, self.height) {
            let row = &mut self.pixels[(row * width + columns.start) * 3..(row * width + columns.end) * 3];
            row.chunks_exact_mut(3).for_each(|pixel| pixel.copy_from_slice(&colour));
        }
    }
}

/// Left, top, right and bottom in whole pixels.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a float beyond the range becomes its end, which is out of view"
)]
fn edges(area: Area) -> [i64; 4] {
    [area.x, area.y, area.x + area.width, area.y + area.height].map(|side| side.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blank(width: u32, height: u32) -> Canvas {
        Canvas { pixels: vec![0; (width * height * 3) as usize], width, height }
    }

    fn pixel(canvas: &Canvas, x: usize, y: usize) -> [u8; 3] {
        let at = (y * canvas.width as usize + x) * 3;
        [canvas.pixels[at], canvas.pixels[at + 1], canvas.pixels[at + 2]]
    }

    #[test]
    fn a_frame_is_drawn_around_and_its_label_above_also_at_the_edge_of_the_picture() {
        let mut canvas = blank(100, 60);
        canvas.frame(Area { x: 20.0, y: 30.0, width: 40.0, height: 20.0 }, "e1", 0);
        assert_eq!(pixel(&canvas, 20, 40), COLOURS[0]);
        assert_eq!(pixel(&canvas, 40, 40), [0, 0, 0], "what is framed can be seen");
        assert_eq!(pixel(&canvas, 20, 17), COLOURS[0], "the label is above");
        canvas.frame(Area { x: -50.0, y: -9.0, width: 1000.0, height: 20.0 }, "e1234567", 1);
        canvas.frame(Area { x: 98.0, y: 58.0, width: 1e9, height: 1e300 }, "e2", 2);
        assert!(!canvas.shows(Area { x: 100.0, y: 0.0, width: 5.0, height: 5.0 }));
    }

    #[test]
    fn a_picture_comes_back_from_its_file_as_it_was() {
        let mut canvas = blank(3, 2);
        canvas.cover(Area { x: 1.0, y: 0.0, width: 1.0, height: 1.0 });
        let again = Canvas::decode(&canvas.encode().expect("a file")).expect("a picture");
        assert_eq!((again.width, again.height, &again.pixels), (3, 2, &canvas.pixels));
        assert!(Canvas::decode(b"no picture").is_none());
    }
}
