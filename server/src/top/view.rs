//! The layout of the screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Gauge, Paragraph, Row, Sparkline, Table};

use trainyard_wire::overview::{MinuteRate, Overview};

/// Minutes of the sparklines.
const MINUTES: i64 = 60;
const MINUTE_MS: i64 = 60_000;

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, shown: &Overview, url: &str, problem: Option<&str>) {
    let lines = |count: usize| Constraint::Length(count.clamp(1, 8) as u16 + 3);
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(3),
        Constraint::Length(5),
        lines(shown.queues.len()),
        lines(shown.workers.iter().map(|worker| worker.models.len()).sum()),
        Constraint::Min(4),
    ])
    .split(frame.area());
    title(frame, areas[0], shown, url, problem);
    memory(frame, areas[1], shown);
    speed(frame, areas[2], shown);
    queues(frame, areas[3], shown);
    workers(frame, areas[4], shown);
    failures(frame, areas[5], shown);
}

fn title(frame: &mut Frame<'_>, area: Rect, shown: &Overview, url: &str, problem: Option<&str>) {
    let line = match problem {
        Some(problem) => Line::from(vec!["Trainyard ".bold(), problem.to_owned().red()]),
        None => Line::from(vec![
            "Trainyard ".bold(),
            format!("{} {url} {}", shown.version, shown.time).into(),
            "   q quits".dim(),
        ]),
    };
    frame.render_widget(Paragraph::new(line), area);
}

fn memory(frame: &mut Frame<'_>, area: Rect, shown: &Overview) {
    let Some(engine) = &shown.engine else {
        // An engine serves all tenants, so the server describes it to the operator only.
        let text = match shown.workers.iter().any(|worker| worker.own) {
            true => "memory and load are shown only to admins of an operator",
            false => "this server executes no requests itself",
        };
        return frame.render_widget(Paragraph::new(text).block(Block::bordered().title("Engine")), area);
    };
    let areas = Layout::horizontal([Constraint::Fill(2), Constraint::Fill(1)]).split(area);
    let budget = engine.memory_budget.max(1);
    let ratio = if engine.memory_budget == 0 { 0.0 } else { (engine.memory_bytes as f64 / budget as f64).min(1.0) };
    let label = match engine.memory_budget {
        0 => format!("{} MiB, no limit", mib(engine.memory_bytes)),
        budget => format!("{} of {} MiB", mib(engine.memory_bytes), mib(budget)),
    };
    frame.render_widget(Gauge::default().block(Block::bordered().title("Memory")).ratio(ratio).label(label), areas[0]);
    let text = format!("{} runs, {} samples", engine.loaded_runs, engine.active_samples);
    frame.render_widget(Paragraph::new(text).block(Block::bordered().title("In the engine")), areas[1]);
}

/// Tokens of each of the last complete minutes, the latest on the right, and the speed of the last 60 seconds.
fn speed(frame: &mut Frame<'_>, area: Rect, shown: &Overview) {
    let areas = Layout::horizontal([Constraint::Fill(1); 3]).split(area);
    let last = shown.rates.last().map_or(0, |rate| rate.minute / MINUTE_MS);
    type Count = fn(&MinuteRate) -> u64;
    let kinds: [(&str, Count); 3] =
        [("Training", |rate| rate.trained), ("Prefill", |rate| rate.prefill), ("Decoding", |rate| rate.sampled)];
    for ((name, tokens), area) in kinds.into_iter().zip(areas.iter()) {
        let mut minutes = vec![0; MINUTES as usize];
        for rate in &shown.rates {
            let back = last - rate.minute / MINUTE_MS;
            if (0..MINUTES).contains(&back) {
                minutes[(MINUTES - 1 - back) as usize] = tokens(rate);
            }
        }
        let shown_minutes = usize::from(area.width.saturating_sub(2)).min(minutes.len());
        let newest = tokens(&shown.latest) as f64 / 60.0;
        let block = Block::bordered().title(format!("{name}: {newest:.1} tokens/s"));
        frame.render_widget(Sparkline::default().block(block).data(&minutes[minutes.len() - shown_minutes..]), *area);
    }
}

fn queues(frame: &mut Frame<'_>, area: Rect, shown: &Overview) {
    let rows = shown.queues.iter().map(|queue| {
        Row::new([
            queue.tenant.clone(),
            queue.queued.to_string(),
            queue.running.to_string(),
            format!("{:.1} s", queue.waiting_seconds),
        ])
    });
    let widths = [Constraint::Fill(2), Constraint::Length(9), Constraint::Length(9), Constraint::Length(14)];
    frame.render_widget(table(rows, widths, ["Tenant", "Waiting", "Running", "Longest wait"], "Queues"), area);
}

fn workers(frame: &mut Frame<'_>, area: Rect, shown: &Overview) {
    let rows = shown.workers.iter().flat_map(|worker| {
        let model = |(model, computed): &(String, Option<String>)| {
            let held =
                worker.engine.as_ref().map_or_else(String::new, |held| format!("{} MiB", held.memory_bytes >> 20));
            Row::new([worker.id.clone(), model.clone(), computed.clone().unwrap_or_default(), held])
        };
        worker.models.iter().map(model)
    });
    let widths = [Constraint::Length(26), Constraint::Fill(1), Constraint::Fill(1), Constraint::Length(11)];
    frame.render_widget(table(rows, widths, ["Worker", "Model", "Computes with", "Memory"], "Workers"), area);
}

fn failures(frame: &mut Frame<'_>, area: Rect, shown: &Overview) {
    let rows = shown.failures.iter().map(|failure| {
        // Nothing that a client wrote reaches the terminal as a command.
        let message: String = failure.message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Row::new([Cell::from(failure.time.clone()), Cell::from(failure.kind.clone()), Cell::from(message)])
    });
    let widths = [Constraint::Length(25), Constraint::Length(20), Constraint::Fill(1)];
    frame.render_widget(table(rows, widths, ["Time", "Operation", "Reason"], "Failures of the last day"), area);
}

fn table<'a, const N: usize>(
    rows: impl Iterator<Item = Row<'a>>,
    widths: [Constraint; N],
    header: [&'static str; N],
    title: &'static str,
) -> Table<'a> {
    let header = Row::new(header).style(Style::new().add_modifier(Modifier::BOLD));
    Table::new(rows, widths).header(header).block(Block::bordered().title(title))
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use trainyard_protocol::Category;
    use trainyard_wire::overview::{EngineUse, Failure, MinuteRate, TenantQueue, Worker};

    use super::*;

    fn screen(shown: &Overview, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, shown, "http://here", None)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
        (0..height).map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn everything_has_its_place_and_nothing_is_a_command() {
        let shown = Overview {
            version: "1.2".to_owned(),
            engine: Some(EngineUse { memory_bytes: 10 << 20, memory_budget: 40 << 20, ..EngineUse::default() }),
            queues: vec![TenantQueue { tenant: "acme".to_owned(), queued: 3, running: 1, waiting_seconds: 2.5 }],
            workers: vec![Worker {
                id: "w1".to_owned(),
                own: true,
                models: vec![("m".to_owned(), Some("bf16 avx2 single v1".to_owned()))],
                engine: Some(EngineUse { memory_bytes: 7 << 20, ..EngineUse::default() }),
            }],
            rates: vec![MinuteRate { minute: 120_000, trained: 900, prefill: 0, sampled: 0 }],
            latest: MinuteRate { minute: 130_000, trained: 600, prefill: 0, sampled: 60 },
            failures: vec![Failure {
                request_id: "r".to_owned(),
                kind: "optim_step".to_owned(),
                run_id: None,
                time: "2026-01-02T03:04:05Z".to_owned(),
                category: Category::User,
                message: "no\u{1b}[2Jway".to_owned(),
            }],
            ..Overview::default()
        };
        let text = screen(&shown, 120, 36);
        for part in [
            "10 of 40 MiB",
            "Training: 10.0 tokens/s",
            "Decoding: 1.0 tokens/s",
            "acme",
            "2.5 s",
            "bf16 avx2 single v1",
            "optim_step",
            "no [2Jway",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        // A terminal of any size.
        for (width, height) in [(1, 1), (20, 5), (400, 100)] {
            screen(&shown, width, height);
            screen(&Overview::default(), width, height);
        }
    }

    #[test]
    fn an_idle_service_has_no_speed() {
        let busy = MinuteRate { minute: 60_000, trained: 16_260, prefill: 0, sampled: 0 };
        let idle = MinuteRate { minute: 120_000, ..MinuteRate::default() };
        let shown = Overview { rates: vec![busy, idle.clone()], latest: idle, ..Overview::default() };
        let text = screen(&shown, 120, 36);
        assert!(text.contains("Training: 0.0 tokens/s"), "{text}");
        // The busy minute is the last but one of the sparkline.
        let bars = text.lines().find(|line| line.contains('█')).unwrap_or_default();
        assert!(bars.contains("█ │"), "{text}");
    }

    #[test]
    fn a_missing_engine_is_hidden_or_elsewhere() {
        let worker = |own| Worker { id: "w1".to_owned(), own, models: Vec::new(), engine: None };
        let shown = |own| Overview { workers: vec![worker(own)], ..Overview::default() };
        assert!(screen(&shown(true), 120, 36).contains("only to admins of an operator"));
        assert!(screen(&shown(false), 120, 36).contains("executes no requests itself"));
    }
}
