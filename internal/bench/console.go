package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// console measures the cost of open consoles for the service while its state changes, and the time for pages of a large installation.
func (b *bench) console(ctx context.Context) error {
	return b.runEach(ctx, []part{{"open consoles", b.openConsoles}, {"list", b.longList}, {"hosts", b.manyHosts}})
}

// openConsoles runs players who come and go at a fixed rate: without consoles, with many that show the overview, and with as many that each show a game session.
func (b *bench) openConsoles(ctx context.Context) error {
	return b.serving(ctx, "console", func(s *server, c *conn) error {
		h, err := b.setUp(c)
		if err != nil {
			return err
		}
		defer h.close()
		if err := h.connectWithGames(ctx, s, c, b.sizes.cycleServers); err != nil {
			return err
		}
		people, err := signIn(ctx, s)
		if err != nil {
			return err
		}
		overview := func(int) string { return "/console/" }
		games := func(i int) string {
			return "/console/game-session/" + h.servers[i%len(h.servers)].game
		}
		var alone float64
		for i, look := range []struct {
			name string
			page func(int) string
		}{{"none", nil}, {"the overview", overview}, {"a game session each", games}} {
			var busy float64
			err := b.profileWhile(ctx, s, fmt.Sprintf("consoles-%d", i), func() (err error) {
				busy, err = b.besideConsoles(ctx, s, h, people, look.page)
				return err
			})
			if err != nil {
				return err
			}
			if i == 0 {
				alone = busy
				continue
			}
			b.table.addFact(fmt.Sprintf("%d open consoles that show %s, %s changes a second: processor time of the service, of one processor", b.sizes.consoles, look.name,
				thousands(int64(b.sizes.consoleChanges))), "10 %", "%.1f %% (%.1f %% with, %.1f %% without them)", 100*(busy-alone), 100*busy, 100*alone)
		}
		return nil
	})
}

// besideConsoles returns the share of a processor that the service uses; page is nil for no consoles.
func (b *bench) besideConsoles(ctx context.Context, s *server, h *hall, people *visitor, page func(int) string) (busy float64, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var watching sync.WaitGroup
	var refreshed atomic.Int64
	failed := make(chan error, b.sizes.consoles)
	if page != nil {
		for i := range b.sizes.consoles {
			watching.Go(func() {
				if err := people.watch(ctx, page(i), &refreshed); err != nil && ctx.Err() == nil {
					failed <- err
					stop()
				}
			})
		}
	}
	k := kind{awsJSON, b.sizes.cycleConnections[0]}
	began := time.Now()
	m, err := b.measureCycles(ctx, s, h, k, load{rate: b.sizes.consoleChanges / requestsInCycle, warm: b.sizes.flowWarm, measure: b.options.Measure})
	took := time.Since(began)
	stop()
	watching.Wait()
	select {
	case err = <-failed:
	default:
	}
	if err != nil {
		return 0, err
	}
	b.progress("    %s; %.0f refreshes a second", m, float64(refreshed.Load())/took.Seconds())
	return m.used.Seconds() / m.took.Seconds(), nil
}

// longList measures pages of a list of many game sessions. The game servers are not connected, but the service has not given them up yet.
func (b *bench) longList(ctx context.Context) error {
	dir, err := b.freshDir("list")
	if err != nil {
		return err
	}
	if _, err := b.fillCell(ctx, dir); err != nil {
		return err
	}
	s, err := b.start(ctx, "the service", dir, "serve")
	if err != nil {
		return err
	}
	defer s.kill()
	people, err := signIn(ctx, s)
	if err != nil {
		return err
	}
	for _, look := range []struct{ name, path string }{
		{"the first page", "/console/game-sessions"},
		{"a fleet's", "/console/game-sessions?fleet=" + localFleet},
		{"found by a search", "/console/game-sessions/search?" + url.Values{"fleet": {localFleet}, "filter": {"hasAvailablePlayerSessions=true"}, "sort": {"creationTimeMillis ASC"}}.Encode()},
	} {
		if err := b.timePages(ctx, people, fmt.Sprintf("a list over %s game sessions, %s", thousands(int64(b.sizes.coreGames)), look.name), look.path, "100 ms"); err != nil {
			return err
		}
	}
	return nil
}

// manyHosts measures the overview and the list of hosts beside many connected agents.
func (b *bench) manyHosts(ctx context.Context) error {
	s, c, _, err := b.serveHosts(ctx, "hosts", "--limit-computes-per-fleet", "100000")
	if err != nil {
		return err
	}
	defer s.kill()
	defer c.close()
	fleet, err := anywhereFleet(c, 1)
	if err != nil {
		return err
	}
	n := b.sizes.consoleHosts
	all, err := b.newHosts(ctx, s, fleet, n)
	if err != nil {
		return err
	}
	defer all.close()
	if err := all.waitConnected(ctx, n); err != nil {
		return err
	}
	if err := all.waitProcesses(ctx, c, n); err != nil {
		return err
	}
	people := newVisitor(s) // development mode needs no sign-in
	for _, look := range []struct{ name, path string }{{"the overview", "/console/"}, {"the list of hosts", "/console/hosts"}} {
		if err := b.timePages(ctx, people, fmt.Sprintf("%s beside %s hosts", look.name, thousands(int64(n))), look.path, "100 ms"); err != nil {
			return err
		}
	}
	return nil
}

// timePages loads a page again and again.
func (b *bench) timePages(ctx context.Context, people *visitor, name, path, aim string) error {
	var h histogram
	var size int
	for begin := time.Now(); time.Since(begin) < b.options.Measure/2 || h.total == 0; {
		began := time.Now()
		page, err := people.get(ctx, path, nil)
		if err != nil {
			return err
		}
		h.add(time.Since(began))
		size = len(page)
	}
	b.progress("    %s: %d loads of %d KiB, p50 %s, p99 %s", name, h.total, size>>10, milliseconds(h.quantile(0.5)), milliseconds(h.quantile(0.99)))
	b.table.addFact(name+": whole page, p99", aim, "%s (p50 %s)", milliseconds(h.quantile(0.99)), milliseconds(h.quantile(0.5)))
	return nil
}

// visitor imitates a browser that has signed in to the console.
type visitor struct {
	client http.Client
	base   string
	cookie string // of the session; empty: none is needed
}

func newVisitor(s *server) *visitor {
	v := &visitor{base: "http://" + s.addr}
	v.client.Transport = &http.Transport{MaxIdleConnsPerHost: 1000}
	v.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return v
}

// signIn signs in with the key of the benchmark.
func signIn(ctx context.Context, s *server) (*visitor, error) {
	v := newVisitor(s)
	form := url.Values{"key": {s.key.ID}, "secret": {s.key.Secret}, "to": {"/console/"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, v.base+"/console/sign-in", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	answer, err := v.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	for _, c := range answer.Cookies() {
		v.cookie = c.Name + "=" + c.Value
	}
	if answer.StatusCode != http.StatusSeeOther || v.cookie == "" {
		return nil, fmt.Errorf("sign in to the console: HTTP %d", answer.StatusCode)
	}
	return v, nil
}

func (v *visitor) open(ctx context.Context, path string, header http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, nil)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	if v.cookie != "" {
		r.Header.Set("Cookie", v.cookie)
	}
	answer, err := v.client.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		return nil, errors.Join(fmt.Errorf("GET %s: HTTP %d: %s", path, answer.StatusCode, text), answer.Body.Close())
	}
	return answer, nil
}

// get returns a page.
func (v *visitor) get(ctx context.Context, path string, header http.Header) ([]byte, error) {
	answer, err := v.open(ctx, path, header)
	if err != nil {
		return nil, err
	}
	page, err := io.ReadAll(answer.Body)
	return page, errors.Join(err, answer.Body.Close())
}

// refresh has the headers with which htmx fetches a page again to replace its content.
var refresh = http.Header{"Hx-Request": {"true"}, "Hx-Target": {"main"}}

// watch opens a page, follows its events, and fetches the page again after each change, as the console's script does, until ctx ends.
func (v *visitor) watch(ctx context.Context, path string, refreshed *atomic.Int64) error {
	page, err := v.get(ctx, path, nil)
	if err != nil {
		return err
	}
	_, rest, ok := strings.Cut(string(page), `sse-connect="`)
	if !ok {
		return fmt.Errorf("GET %s: the page does not show the current state", path)
	}
	stream, _, _ := strings.Cut(rest, `"`)
	answer, err := v.open(ctx, strings.ReplaceAll(stream, "&amp;", "&"), nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if lines.Text() != "event: changed" {
			continue
		}
		if _, err := v.get(ctx, path, refresh); err != nil {
			return err
		}
		refreshed.Add(1)
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("GET %s: the stream ended", stream)
}
