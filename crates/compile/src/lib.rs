//! Lowers a policy graph to what each kind of device needs.
