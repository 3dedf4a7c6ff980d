//! Kinds of devices.

use std::fmt;

use catena_plan_model::rack::SwitchKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Device {
    /// A switch that a program in P4 is written for.
    P4Switch,
    /// A switch with tables of OpenFlow.
    #[serde(rename = "openflow_switch")]
    OpenFlowSwitch,
    /// A switch that only forwards.
    PlainSwitch,
    /// A server's cores.
    Server,
    /// A SmartNIC.
    SmartNic,
}

impl Device {
    /// The device that a switch of this kind is.
    #[must_use]
    pub fn of(kind: &SwitchKind) -> Device {
        match kind {
            SwitchKind::Plain { .. } => Device::PlainSwitch,
            SwitchKind::Pisa(_) => Device::P4Switch,
            SwitchKind::OpenFlow { .. } => Device::OpenFlowSwitch,
        }
    }

    /// Whether it is a switch.
    #[must_use]
    pub fn is_switch(self) -> bool {
        !matches!(self, Device::Server | Device::SmartNic)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Device::P4Switch => "P4 switch",
            Device::OpenFlowSwitch => "OpenFlow switch",
            Device::PlainSwitch => "switch that only forwards",
            Device::Server => "server",
            Device::SmartNic => "SmartNIC",
        })
    }
}
