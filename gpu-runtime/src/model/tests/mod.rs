mod adapter;
mod experts;
mod memory;
mod scalar_head;
mod vocabulary;
