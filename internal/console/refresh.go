package console

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/musterhq/muster/internal/identity"
)

const (
	// sharedBytesMax bounds the size of the pages that are kept for other viewers. The first page that is built after a change replaces all of them.
	sharedBytesMax = 8 << 20
	// refreshTime bounds the building of a page that all its viewers share. It is not bounded by the first viewer's request, because that viewer may
	// leave.
	refreshTime = 10 * time.Second
)

// shared caches the pages that viewers have fetched again since the last change event, so that each is built once for all viewers.
type shared struct {
	building singleflight.Group

	mu     sync.Mutex
	number uint64 // at the last change event
	pages  map[string][]byte
	bytes  int
}

// get returns a cached page that shows entry number and all entries before it.
func (s *shared) get(number uint64, key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number > s.number {
		return nil
	}
	return s.pages[key]
}

func (s *shared) put(number uint64, key string, page []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case number < s.number:
		return
	case number > s.number:
		s.number, s.pages, s.bytes = number, map[string][]byte{}, 0
	}
	if _, known := s.pages[key]; !known && s.bytes+len(page) <= sharedBytesMax {
		s.pages[key] = page
		s.bytes += len(page)
	}
}

// isRefresh reports whether an open page is fetching itself again after a change event.
func isRefresh(r *http.Request) bool {
	return r.Header.Get("HX-Request") != "" && r.Header.Get("HX-Target") == "main" && !r.URL.Query().Has(doneParameter)
}

// refresh answers an open page with the part of it that follows the state.
func (d *Door) refresh(w http.ResponseWriter, r *http.Request, by identity.AccessKey, build func(*http.Request) (*content, error)) {
	page, err := d.refreshed(r, by, build)
	if err != nil {
		status, c := d.refusal(r, err)
		d.write(w, r, status, c, by)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page) // the browser has gone if it fails
}

// refreshed returns the part of a page that follows the state. Without policies, a page depends only on its URL and on the viewer's role, so all viewers
// of one role share it. Policies can depend on anything in a request, such as its address, so the pages of restricted viewers are their own.
func (d *Door) refreshed(r *http.Request, by identity.AccessKey, build func(*http.Request) (*content, error)) ([]byte, error) {
	timed := func(r *http.Request) (page []byte, ofState bool, err error) {
		began := time.Now()
		defer func() { d.live.pace.spent(time.Since(began)) }()
		return d.part(r, by, build)
	}
	if who := by.Principal(""); who.Restricted() {
		page, _, err := timed(r)
		return page, err
	}
	number, _ := d.live.look()
	key := by.Role.String() + " " + r.URL.RequestURI()
	if page := d.shared.get(number, key); page != nil {
		d.live.pace.spent(refreshLeast)
		return page, nil
	}
	built, err, _ := d.shared.building.Do(strconv.FormatUint(number, 10)+" "+key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), refreshTime)
		defer cancel()
		page, ofState, err := timed(r.WithContext(ctx))
		if err == nil && ofState {
			d.shared.put(number, key, page)
		}
		return page, err
	})
	if err != nil {
		return nil, err
	}
	return built.([]byte), nil
}

// part returns the part of a page that follows the state. ofState is false if the page also shows what changes without the state.
func (d *Door) part(r *http.Request, by identity.AccessKey, build func(*http.Request) (*content, error)) (part []byte, ofState bool, err error) {
	c, err := build(r)
	if err != nil {
		return nil, false, err
	}
	var page bytes.Buffer
	err = templates[c.page]().ExecuteTemplate(&page, "content", frame{content: c, door: d, role: by.Role})
	return settled(page.Bytes()), !c.Ticks, err
}
