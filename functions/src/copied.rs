//! Plans that are copied: `derive` would ask for an engine that can be copied, though a plan holds only its tickets.

/// Let types be copied whose fields can be, whatever their parameters are.
macro_rules! copied {
    ($($name:ident<$($param:ident: $bound:ident),+>),+) => {
        $(
            impl<$($param: $bound),+> Copy for $name<$($param),+> {}
            impl<$($param: $bound),+> Clone for $name<$($param),+> {
                fn clone(&self) -> Self {
                    *self
                }
            }
        )+
    };
}
