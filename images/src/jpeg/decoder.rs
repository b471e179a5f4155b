//! Decoding of a file's segments to pixels.

use crate::ImageError;
use crate::jpeg::coefficients::{first_bits, next_bits, progressive_constant, sequential};
use crate::jpeg::colour;
use crate::jpeg::frame::Frame;
use crate::jpeg::huffman::Huffman;
use crate::jpeg::planes::{Coefficients, Plane};
use crate::jpeg::refusals::{damaged, truncated, unsupported};
use crate::jpeg::scan::Scan;
use crate::jpeg::segments::{Segments, marker};
use crate::jpeg::tables::Tables;
use crate::jpeg::upsample::Upsampling;

/// Maximum number of scans of a progressive file. Encoders write about ten; each scan costs time for all blocks.
const MOST_SCANS: usize = 100;

/// Decodes a file to RGB, row by row. The caller has checked the size in its header.
pub(crate) fn decode(data: &[u8]) -> Result<Vec<u8>, ImageError> {
    let frame = Frame::find(data)?;
    if frame.least_bytes() > data.len() {
        return Err(truncated());
    }
    let mut tables = Tables::default();
    let planes = if frame.progressive {
        progressive_planes(data, &frame, &mut tables)?
    } else {
        sequential_planes(data, &frame, &mut tables)?
    };
    Ok(pixels(&frame, &planes, frame.components.len() == 3 && tables.has_luminance(&frame)))
}

/// Reads segments up to the next scan. `None` at the end of the image.
fn next_scan(segments: &mut Segments<'_>, tables: &mut Tables, frame: &Frame) -> Result<Option<Scan>, ImageError> {
    let mut headers = 0;
    loop {
        let segment = segments.next()?;
        match segment.marker {
            marker::SOS => return Scan::parse(segment.content, frame).map(Some),
            marker::EOI => return Ok(None),
            marker::DNL => {
                return Err(unsupported("a segment that sets the height (DNL)", "expected the height in the header"));
            }
            marker::DHT | marker::JPG | marker::DAC => tables.read(&segment)?,
            marker::SOF0..=marker::SOF15 => headers += 1,
            _ => tables.read(&segment)?,
        }
        if headers > 1 {
            return Err(damaged("a second frame header"));
        }
    }
}

fn table(tables: &[Option<Huffman>; 4], index: usize) -> Result<&Huffman, ImageError> {
    tables[index].as_ref().ok_or_else(|| damaged(&format!("the Huffman table {index} is missing")))
}

/// Returns the quantization table that is valid at a component's first scan.
fn quantization(tables: &Tables, frame: &Frame, component: usize) -> Result<[u16; 64], ImageError> {
    let index = frame.components[component].table;
    tables.quantization[index].ok_or_else(|| damaged(&format!("the quantization table {index} is missing")))
}

fn sequential_planes(data: &[u8], frame: &Frame, tables: &mut Tables) -> Result<Vec<Plane>, ImageError> {
    let mut segments = Segments::new(data);
    let mut planes: Vec<Option<Plane>> = frame.components.iter().map(|_| None).collect();
    while planes.iter().any(Option::is_none) {
        let scan = next_scan(&mut segments, tables, frame)?.ok_or_else(|| damaged("the last scans are missing"))?;
        let mut parts = Vec::new();
        for part in &scan.parts {
            if planes[part.component].is_some() {
                return Err(damaged("two scans of the same component"));
            }
            planes[part.component] = Some(Plane::new(&frame.components[part.component]));
            let constant = table(&tables.constant, part.constant)?;
            let codes = table(&tables.alternating, part.alternating)?;
            parts.push((part.component, constant, codes, quantization(tables, frame, part.component)?));
        }
        let read = scan.walk(frame, tables.restart, segments.rest(), |bits, memory, place| {
            let (component, constant, codes, quantization) = &parts[place.part];
            let block = sequential(bits, constant, codes, &mut memory.constants[place.part])?;
            if let Some(plane) = &mut planes[*component] {
                plane.set(place.row, place.column, &block, quantization);
            }
            Ok(())
        })?;
        segments.skip(read);
    }
    Ok(planes.into_iter().flatten().collect())
}

fn progressive_planes(data: &[u8], frame: &Frame, tables: &mut Tables) -> Result<Vec<Plane>, ImageError> {
    let mut segments = Segments::new(data);
    let mut coefficients: Vec<_> = frame.components.iter().map(Coefficients::new).collect();
    let mut quantizations = vec![None; coefficients.len()];
    let mut scans = 0;
    while let Some(scan) = next_scan(&mut segments, tables, frame)? {
        scans += 1;
        if scans > MOST_SCANS {
            return Err(unsupported(&format!("a number of scans above {MOST_SCANS}"), "write the image again"));
        }
        for part in &scan.parts {
            coefficients[part.component].begin(scan.band)?;
            if quantizations[part.component].is_none() {
                quantizations[part.component] = Some(quantization(tables, frame, part.component)?);
            }
        }
        let read = progressive_scan(&scan, frame, tables, segments.rest(), &mut coefficients)?;
        segments.skip(read);
    }
    let all = frame.components.iter().zip(coefficients).zip(quantizations);
    all.map(|((component, coefficients), quantization)| {
        let quantization = quantization.ok_or_else(|| damaged("the last scans are missing"))?;
        coefficients.plane(component, &quantization)
    })
    .collect()
}

fn progressive_scan(
    scan: &Scan,
    frame: &Frame,
    tables: &Tables,
    data: &[u8],
    coefficients: &mut [Coefficients],
) -> Result<usize, ImageError> {
    let band = scan.band;
    let mut codes = Vec::new();
    for part in &scan.parts {
        codes.push(match band.first {
            0 if band.before > 0 => None,
            0 => Some(table(&tables.constant, part.constant)?),
            _ => Some(table(&tables.alternating, part.alternating)?),
        });
    }
    scan.walk(frame, tables.restart, data, |bits, memory, place| {
        let block = coefficients[scan.parts[place.part].component].block(place.row, place.column);
        match codes[place.part] {
            Some(codes) if band.first > 0 && band.before > 0 => next_bits(bits, codes, band, &mut memory.empty, block),
            Some(codes) if band.first > 0 => first_bits(bits, codes, band, &mut memory.empty, block),
            codes => progressive_constant(bits, codes, &mut memory.constants[place.part], band.low, block),
        }
    })
}

/// Upsamples all components and converts their colours.
fn pixels(frame: &Frame, planes: &[Plane], luminance: bool) -> Vec<u8> {
    let (width, height) = (frame.size.width as usize, frame.size.height as usize);
    let upsampling: Vec<_> = frame.components.iter().map(|component| Upsampling::new(component, frame)).collect();
    let mut rows = vec![Vec::with_capacity(width + 8); planes.len()];
    let mut pixels = Vec::with_capacity(width * height * 3);
    for at in 0..height {
        for ((upsampling, plane), row) in upsampling.iter().zip(planes).zip(&mut rows) {
            upsampling.row(plane, at, row);
        }
        match &rows[..] {
            [first, second, third] => {
                let samples = first.iter().zip(second).zip(third).take(width);
                pixels.extend(samples.flat_map(|((&first, &second), &third)| match luminance {
                    true => colour::rgb(first, second, third),
                    false => [first, second, third],
                }));
            }
            rows => pixels.extend(rows[0].iter().take(width).flat_map(|&grey| [grey; 3])),
        }
    }
    pixels
}
