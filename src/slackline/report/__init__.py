"""Tables, figures and the page. They only read the store."""
