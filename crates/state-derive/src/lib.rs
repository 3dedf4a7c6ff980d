//! `#[derive(Plain)]` and `#[derive(Stored)]`: the bytes of a type are those of its fields, one after the other.
//!
//! The traits, `catena_state::Plain` and `catena_state::Stored`, say what that means. Of an enum, which is plain, the first byte is the
//! variant's number, from 0 in the order of the source; what a variant is shorter than the longest is filled up with zeros.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Fields, Ident, Type, parse_macro_input, parse_quote};

/// Derive `Plain` for a struct or an enum whose fields all are.
#[proc_macro_derive(Plain)]
pub fn plain(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive(input).unwrap_or_else(Error::into_compile_error).into()
}

/// Derive `Stored` for a struct whose fields all are.
#[proc_macro_derive(Stored)]
pub fn stored(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive_stored(input).unwrap_or_else(Error::into_compile_error).into()
}

fn derive_stored(input: DeriveInput) -> syn::Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(input.ident, "only a struct is stored field by field"));
    };
    if let Some(parameter) = input.generics.params.first() {
        return Err(Error::new_spanned(parameter, "what is stored is one type"));
    }
    let name = &input.ident;
    let Part { pattern, names, make, .. } =
        Part::new(quote!(Self), &data.fields, &quote!(::catena_state::Stored::restore));
    Ok(quote! {
        impl ::catena_state::Stored for #name {
            fn store(&self, to: &mut ::std::vec::Vec<u8>) {
                let #pattern = self;
                #(::catena_state::Stored::store(#names, to);)*
            }

            fn restore(from: &mut &[u8]) -> ::std::option::Option<Self> {
                ::std::option::Option::Some(#make)
            }
        }
    })
}

fn derive(input: DeriveInput) -> syn::Result<TokenStream> {
    let parts: Vec<Part> = match &input.data {
        Data::Struct(data) => vec![Part::new(quote!(Self), &data.fields, &read_plain())],
        Data::Enum(data) => data.variants.iter().map(|variant| Part::of(&variant.ident, &variant.fields)).collect(),
        Data::Union(_) => return Err(Error::new_spanned(input.ident, "a union does not say what its bytes mean")),
    };
    let (bytes, write, read) = match &input.data {
        Data::Enum(_) if parts.len() > 256 => {
            return Err(Error::new_spanned(input.ident, "more variants than one byte can number"));
        }
        Data::Enum(_) => choice(&parts),
        _ => sequence(&parts[0]),
    };
    let mut generics = input.generics;
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(::catena_state::Plain));
    }
    let (name, (of, with, bounds)) = (input.ident, generics.split_for_impl());
    Ok(quote! {
        impl #of ::catena_state::Plain for #name #with #bounds {
            const BYTES: usize = #bytes;

            fn write(&self, to: &mut ::std::vec::Vec<u8>) {
                #write
            }

            fn read(from: &mut &[u8]) -> ::std::option::Option<Self> {
                #read
            }
        }
    })
}

/// The bytes of a struct.
fn sequence(part: &Part) -> (TokenStream, TokenStream, TokenStream) {
    let Part { pattern, names, bytes, make, .. } = part;
    let write = quote! {
        let #pattern = self;
        #(::catena_state::Plain::write(#names, to);)*
    };
    (quote!(#bytes), write, quote!(::std::option::Option::Some(#make)))
}

/// The bytes of an enum.
fn choice(parts: &[Part]) -> (TokenStream, TokenStream, TokenStream) {
    let numbers = (0..parts.len()).map(|number| number as u8);
    let (read_numbers, lengths) = (numbers.clone(), parts.iter().map(|part| &part.bytes));
    let bytes = quote! {{
        let (lengths, mut longest, mut at) = ([#(#lengths),*], 0, 0);
        while at < lengths.len() {
            if lengths[at] > longest {
                longest = lengths[at];
            }
            at += 1;
        }
        1 + longest
    }};
    let arms = parts.iter().zip(numbers).map(|(Part { pattern, names, .. }, number)| {
        quote!(#pattern => { to.push(#number); #(::catena_state::Plain::write(#names, to);)* })
    });
    let write = quote! {
        let end = to.len() + <Self as ::catena_state::Plain>::BYTES;
        match self { #(#arms)* }
        to.resize(end, 0);
    };
    let makes = parts.iter().map(|part| &part.make);
    let read = quote! {
        let mut bytes = from.split_off(..<Self as ::catena_state::Plain>::BYTES)?;
        let from = &mut bytes;
        let value = match <u8 as ::catena_state::Plain>::read(from)? {
            #(#read_numbers => #makes,)*
            _ => return ::std::option::Option::None,
        };
        bytes.iter().all(|byte| *byte == 0).then_some(value)
    };
    (bytes, write, read)
}

/// A struct or a variant: how it is taken apart and put together.
struct Part {
    pattern: TokenStream,
    names: Vec<Ident>,
    /// Its length in bytes.
    bytes: TokenStream,
    /// Puts it together from what `from` holds.
    make: TokenStream,
}

impl Part {
    fn of(variant: &Ident, fields: &Fields) -> Part {
        Part::new(quote!(Self::#variant), fields, &read_plain())
    }

    /// Take a struct or a variant apart; each field is taken off the bytes with `read`.
    fn new(path: TokenStream, fields: &Fields, read: &TokenStream) -> Part {
        let types: Vec<&Type> = fields.iter().map(|field| &field.ty).collect();
        let names: Vec<Ident> = (0..types.len()).map(|number| format_ident!("field{number}")).collect();
        let reads = types.iter().map(|_| quote!(#read(from)?));
        let (pattern, make) = match fields {
            Fields::Named(named) => {
                let own: Vec<_> = named.named.iter().filter_map(|field| field.ident.as_ref()).collect();
                let make = quote!(#path { #(#own: #reads),* });
                (quote!(#path { #(#own: #names),* }), make)
            }
            Fields::Unnamed(_) => (quote!(#path(#(#names),*)), quote!(#path(#(#reads),*))),
            Fields::Unit => (quote!(#path), quote!(#path)),
        };
        Part { pattern, names, bytes: quote!(0 #(+ <#types as ::catena_state::Plain>::BYTES)*), make }
    }
}

/// What takes plain data off the bytes.
fn read_plain() -> TokenStream {
    quote!(::catena_state::Plain::read)
}
