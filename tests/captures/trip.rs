//! Packets sent through a chain with a NAT, there and back, and held to what they were.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::compare::{Between, Comparison, compare};
use super::packets::{Packet, read, write};
use super::parts::mirrored;
use super::wireshark::tshark;
use super::{accounted, number, run};

/// Compare a capture that came out with what went in, by arithmetic and by what Wireshark says of each packet.
pub fn judge(input: &[Packet], output: &Path, between: Between) -> Comparison {
    let came = read(output);
    let mut result = compare(input, &came, between);
    let folder = tempfile::tempdir().expect("a folder");
    let given = folder.path().join("given.pcapng");
    write(&given, input);
    let (Some(before), Some(after)) = (tshark(&given), tshark(output)) else { return result };
    assert_eq!((before.len(), after.len()), (input.len(), came.len()), "Wireshark reads every packet");
    for (number, (partner, after)) in result.partners.iter().zip(&after).enumerate() {
        let worse = partner.and_then(|partner| after.worse_than(&before[partner]));
        result.findings.extend(worse.map(|what| (number, what)));
    }
    result
}

impl Comparison {
    /// Assert that no packet is worse than it was.
    ///
    /// # Panics
    /// When one is.
    pub fn hold(&self) {
        let Comparison { partners, changed, twins, wrong, cut, dropped, findings } = self;
        let (came, worse) = (partners.len(), findings.len());
        println!(
            "{came} out: {changed} changed, {wrong} wrong before, {cut} cut before, {twins} with twins, {worse} worse; \
             {dropped} not out"
        );
        let first: Vec<String> =
            findings.iter().take(20).map(|(n, what)| format!("output packet {n} {what}")).collect();
        assert!(findings.is_empty(), "{worse} findings:\n  {}", first.join("\n  "));
    }
}

/// What came of a trip: on the way out, and on the way back.
pub struct Trip {
    /// The run's report.
    pub report: Value,
    /// From inside to outside.
    pub there: Comparison,
    /// Of every packet that was changed on its way out, its answer.
    pub back: Comparison,
    /// The answers that were sent.
    pub answers: usize,
}

impl Trip {
    /// Assert that no packet of either way is worse than it was, and that the report counts as many as came out.
    ///
    /// # Panics
    /// When one is.
    pub fn hold(&self) {
        accounted(&self.report);
        self.there.hold();
        self.back.hold();
        let came = self.there.partners.len() + self.back.partners.len();
        assert_eq!(number(&self.report, "/output/packets"), came as u64);
    }
}

/// Return how many packets a run dropped, by reason.
pub fn drops(report: &Value) -> BTreeMap<&str, u64> {
    let mut drops = BTreeMap::new();
    for module in report["modules"].as_array().into_iter().flatten() {
        for (reason, count) in module["drops"].as_object().into_iter().flatten() {
            *drops.entry(reason.as_str()).or_default() += count.as_u64().unwrap_or(0);
        }
    }
    drops
}

/// Send a capture through a chain out, and with it the answers of all packets that are changed on their way out,
/// their mirror images, through it back. Every packet of both ways is judged.
pub fn there_and_back(folder: &Path, chain: &Path, capture: &Path, input: &[Packet]) -> Trip {
    let path = |name: &str| folder.join(name).display().to_string();
    let (chain, capture) = (chain.display().to_string(), capture.display().to_string());
    accounted(&run(&[&chain, "--in", &capture, "--out", &path("once.pcapng"), "--seed", "3"]));
    let once = read(&folder.join("once.pcapng"));
    let partners = compare(input, &once, Between::Translators).partners;
    // An answer comes 1 ns after its packet.
    let answers: Vec<Packet> = once
        .iter()
        .zip(partners)
        .filter(|(packet, partner)| partner.is_some_and(|partner| input[partner].frame != packet.frame))
        .map(|(packet, _)| Packet { time: packet.time + 1, frame: mirrored(&packet.frame), ..*packet })
        .collect();
    let count = answers.len();
    write(&folder.join("answers.pcapng"), &answers);

    let (out, home) = (path("out.pcapng"), path("home.pcapng"));
    let answering = ["--back-in", &path("answers.pcapng"), "--back-out", &home];
    let report = run(&[&[&chain, "--in", &capture, "--out", &out, "--seed", "3"][..], &answering].concat());
    let there = judge(input, &folder.join("out.pcapng"), Between::Translators);
    let back = judge(&answers, &folder.join("home.pcapng"), Between::Translators);
    Trip { report, there, back, answers: count }
}
