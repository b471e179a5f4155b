mod adapter;
mod differences;
mod entropy;
mod experts;
mod interrupt;
mod memory;
mod scalar_head;
mod vocabulary;
