package console

import (
	"compress/gzip"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
)

// staticMax limits the total size of the console's scripts, styles and images, in bytes as browsers receive them.
const staticMax = 100_000

func TestStaticFilesAreSmall(t *testing.T) {
	x, sum := newDesk(t), 0
	for name, url := range urls {
		if name == "LICENSES.txt" { // no page loads it
			continue
		}
		r := httptest.NewRequest("GET", url, nil)
		r.Header.Set("Accept-Encoding", "gzip, deflate, br")
		w := httptest.NewRecorder()
		x.ServeHTTP(w, r)
		sum += w.Body.Len()
		plain, err := static.ReadFile("static/" + name)
		if err != nil {
			t.Fatal(err)
		}
		unzipped, err := gzip.NewReader(w.Body)
		if err != nil || w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Vary") != "Accept-Encoding" || strings.Contains(w.Header().Get("Content-Type"), "gzip") {
			t.Fatalf("%s: %v, %v", name, w.Header(), err)
		}
		if all, err := io.ReadAll(unzipped); err != nil || string(all) != string(plain) {
			t.Errorf("%s has changed on the way: %v", name, err)
		}
		if all := text(t, x.get(url)); all != string(plain) {
			t.Errorf("%s without compression has changed on the way", name)
		}
	}
	if sum > staticMax {
		t.Errorf("the static files have %d bytes, want %d at most", sum, staticMax)
	}
	t.Logf("the static files have %d bytes", sum)
}
