package console

import "testing"

// A page that cannot be parsed would end the process when it is first shown.
func TestAllPagesAreParsed(t *testing.T) {
	if len(templates) < 30 {
		t.Errorf("%d pages, want all of them", len(templates))
	}
	for name, page := range templates {
		if page().Lookup("content") == nil {
			t.Errorf("page %s has no content", name)
		}
	}
}
