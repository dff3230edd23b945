package console

import (
	"net/http"
	"strings"
	"testing"
)

// An unknown path also gets a page of the console. To people who have not signed in, it reveals no more than other paths.
func TestUnknownPath(t *testing.T) {
	x := newDesk(t)
	who := x.signedInAs("LOOK")
	r := x.get(Prefix+"/no/such/page", who)
	if page := text(t, r); r.StatusCode != http.StatusNotFound || !strings.Contains(page, "The console has no page at this address.") || !strings.Contains(page, `<nav aria-label="Sections">`) {
		t.Errorf("signed in: %d %s", r.StatusCode, page)
	}
	unknown, known := x.get(Prefix+"/no-such-page"), x.get(Prefix+"/fleets")
	if unknown.StatusCode != known.StatusCode || unknown.Header.Get("Location") != strings.Replace(known.Header.Get("Location"), "fleets", "no-such-page", 1) {
		t.Errorf("without a sign-in: %d to %s, and a page that exists %d to %s", unknown.StatusCode, unknown.Header.Get("Location"), known.StatusCode, known.Header.Get("Location"))
	}
	if a, b := x.send(who, "no/such/action"), x.send(nil, "no/such/action"); a.StatusCode != http.StatusNotFound || b.StatusCode == http.StatusNotFound {
		t.Errorf("a form for a path without a page: %d, without a sign-in %d", a.StatusCode, b.StatusCode)
	}
}
