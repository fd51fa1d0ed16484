"""What is handed over: answers as people and language models read them."""
