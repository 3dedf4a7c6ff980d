//! What ordinary programs lose beside shuffles and requests: Khalid's dissertation, section 2.3.1, Figure 2.13.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use catena_isolation::scene::actor::{DATAGRAM, Protocol, Role};
use catena_isolation::scene::turn::{Times, Traffic, Turn, Way};
use catena_isolation::scene::{PREFIX, Scene, SceneError};
use catena_records::record::{Record, median};

use super::over;
use super::{ACT, Options, QUOTAS};

/// What victims may lose on the average, with enforcement.
const BAR: f64 = 1.04;
/// The paper's least average without it, of three kinds of traffic: "the average penalty factor ranges from 1.21-1.57".
const PAPER: [f64; 2] = [1.21, 1.04];
/// Lines of the file that victims read, and words of each.
const LINES: usize = 100_000;
const WORDS: usize = 8;

/// Victims: a name, and the command's words. `FILE` is the file. Each run takes some 0.05 s.
const VICTIMS: [(&str, &[&str]); 4] = [
    ("sort", &["sort", "FILE"]),
    ("wc", &["wc", "FILE"]),
    // Four letters that read the same from both ends: `grep` has to try again and again, so it looks for the first lines only.
    ("grep", &["grep", "-m", "640", r"\([a-z]\)\([a-z]\)\2\1", "FILE"]),
    ("pi", &["awk", "BEGIN{for(i=0;i<1000000;i++)s+=(i%2?-4:4)/(2*i+1);print(s)}"]),
];

/// What the container beside the victim does: connections that are filled both ways, as when sorted parts are handed out, and
/// requests that it answers, more than its quota pays for.
const TRAFFIC: [(&str, Traffic); 2] = [
    ("shuffle", Traffic { protocol: Protocol::Tcp, way: Way::Both, rate: 4, size: DATAGRAM, count: 1 }),
    ("requests", Traffic { protocol: Protocol::Udp, way: Way::Answers, rate: 100_000, size: 100, count: 1 }),
];

/// A file that goes when this does.
struct Words(PathBuf);

impl Words {
    fn new() -> std::io::Result<Words> {
        // What a killed run left has its number in its name, and goes with the next scene.
        let words = Words(std::env::temp_dir().join(format!("{PREFIX}{}-words", std::process::id())));
        fs::write(&words.0, text(LINES))?;
        Ok(words)
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0);
    }
}

/// Return lines of words of three to nine letters, the same ones each time.
fn text(lines: usize) -> String {
    let mut number = 1_u64;
    let mut next = move |below: u64| {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        (number >> 32) % below
    };
    let mut text = String::new();
    for _ in 0..lines {
        for word in 0..WORDS {
            for _ in 0..3 + next(7) {
                text.push(char::from(b"etaoinshrdlucmfwypvbgkqjxz"[next(26) as usize]));
            }
            text.push(if word + 1 == WORDS { '\n' } else { ' ' });
        }
    }
    text
}

/// Measure all of them, and the average where none is left out.
///
/// # Errors
/// When there is no scene.
pub fn rows(options: &Options) -> Result<Vec<Record>, SceneError> {
    let mut rows: Vec<Record> = Vec::new();
    let mut all = [Vec::new(), Vec::new()];
    let mut words = None;
    for (victim, command) in VICTIMS {
        for (kind, traffic) in TRAFFIC {
            let name = format!("applications, {victim} beside {kind}");
            if !name.contains(&options.only) {
                continue;
            }
            eprintln!("{name}");
            if words.is_none() {
                words = Some(Words::new().map_err(|error| SceneError::File { what: "words".to_owned(), error })?);
            }
            let file = words.as_ref().map_or(Path::new(""), |words| &words.0);
            let (samples, gaps) = factors(options, command, file, traffic)?;
            for (number, mut samples) in samples.into_iter().enumerate() {
                let (value, spread) = median(&mut samples);
                all[number].push(value);
                let peer = vec![("accounts' gap, %".to_owned(), gaps[number])];
                rows.push(Record { value, spread, peer, ..record(&name, number) });
            }
        }
    }
    if all[0].len() == VICTIMS.len() * TRAFFIC.len() {
        rows.extend([0, 1].map(|number| Record { paper: Some(PAPER[number]), ..average(&all[number], number) }));
    }
    Ok(rows)
}

fn record(name: &str, number: usize) -> Record {
    let case = format!("{name}: {}", ["without", "with threads"][number]);
    Record { bench: "iron-applications".to_owned(), case, unit: "penalty factor".to_owned(), ..Record::default() }
}

/// Return the row for all of them: its spread is that of their medians.
fn average(values: &[f64], number: usize) -> Record {
    let value = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let spread = median(&mut values.to_vec()).1;
    Record { value, spread, bar: (number == 1).then_some(BAR), ..record("applications, average", number) }
}

/// Play rounds: return how much longer the victim takes, without and with enforcement, and the accounts' largest gaps, in
/// percent.
fn factors(
    options: &Options,
    command: &[&str],
    file: &Path,
    traffic: Traffic,
) -> Result<([Vec<f64>; 2], [f64; 2]), SceneError> {
    let containers = ["victim", "traffic"].map(|name| (name.to_owned(), QUOTAS / 2.0));
    let mut scene = Scene::new(&containers, &[ACT])?;
    let file = file.to_string_lossy();
    scene.set_victim(Role::Run(command.iter().map(|word| word.replace("FILE", &file)).collect()));
    // Commands end a few times a second: they are measured for longer. What comes before is as in other rows.
    let measured = options.measured * 3 / 2;
    let mut factors = [Vec::new(), Vec::new()];
    let mut gaps = [0.0_f64; 2];
    for _ in 0..options.rounds {
        let play = |turn, before| {
            let seen =
                scene.turn(traffic, turn, Times { before: Duration::from_millis(before), measured }, over::is_over)?;
            Ok::<_, SceneError>((seen.work, seen.status.gap * 100.0))
        };
        let (calm, _) = play(Turn::Calm, 1200)?;
        for (number, turn, before) in [(0, Turn::Without, 200), (1, Turn::Threads, 1000)] {
            let (work, gap) = play(turn, before)?;
            factors[number].push(calm / work.max(f64::MIN_POSITIVE));
            gaps[number] = gaps[number].max(gap);
        }
    }
    Ok((factors, gaps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_its_lines_and_words_and_something_to_find() {
        let text = text(500);
        assert!(text.lines().count() == 500 && text.lines().all(|line| line.split(' ').count() == WORDS));
        assert!(text.split_whitespace().all(|word| (3..10).contains(&word.len())));
        let is_found = |word: &str| word.as_bytes().windows(4).any(|w| w[0] == w[3] && w[1] == w[2]);
        assert!(text.split_whitespace().any(is_found));
    }

    #[test]
    fn the_average_has_the_bar_with_enforcement_only() {
        let (without, with) = (average(&[1.0, 2.0], 0), average(&[1.0, 1.06], 1));
        assert_eq!((without.value, without.spread, without.holds()), (1.5, 1.0, None));
        assert_eq!((with.holds(), &with.case[..]), (Some(true), "applications, average: with threads"));
    }
}
