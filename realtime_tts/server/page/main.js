// The demo page.
