package sessionapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/internal/identity"
)

type noKeys struct{}

func (noKeys) Find(string) (identity.AccessKey, bool) { return identity.AccessKey{}, false }
func (noKeys) With(string, string, string) (identity.AccessKey, error) {
	return identity.AccessKey{}, identity.ErrUnknown
}

// A node that was given up ends its event streams, and starts none until it is registered again.
func TestGivenUpNodeEndsItsStreams(t *testing.T) {
	var registered atomic.Bool
	registered.Store(true)
	d := NewDoor(Config{Dev: true, Keys: noKeys{}, Registered: registered.Load})
	t.Cleanup(d.Close)
	s := httptest.NewServer(d)
	t.Cleanup(s.Close)
	listen := func() *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+Prefix+"events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Client-Id", "tool")
		got, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = got.Body.Close() })
		return got
	}
	for range 2 {
		stream := listen()
		if stream.StatusCode != http.StatusOK {
			t.Fatalf("got %d", stream.StatusCode)
		}
		registered.Store(false)
		d.DropStreams()
		if _, err := io.ReadAll(stream.Body); err != nil {
			t.Error(err)
		}
		if got := listen(); got.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("a stream at the lost node: %d", got.StatusCode)
		}
		registered.Store(true)
	}
}
