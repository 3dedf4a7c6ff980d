//! State objects and the engines that hold them.
