mod adapter;
mod experts;
mod interrupt;
mod memory;
mod scalar_head;
mod vocabulary;
