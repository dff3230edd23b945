package export

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	domainaudit "github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/waittest"
)

// book is an audit log in memory.
type book struct {
	mu      sync.Mutex
	start   time.Time
	entries []domainaudit.Entry
	gone    map[uint64]bool
	head    domainaudit.Head
	broken  bool // records no position

	recorded func(no uint64) // nil, or called with each position
}

func newBook(entries int) *book {
	b := &book{start: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), gone: map[uint64]bool{}}
	b.add(entries)
	return b
}

func (b *book) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range n {
		e := domainaudit.Entry{
			No: b.head.No + 1, At: domain.TimeOf(b.start), Previous: b.head.Hash, Until: domain.TimeOf(b.start.Add(time.Hour)), PreviousUntil: b.head.Until,
			By:   domainaudit.Origin{Principal: "AKOPS", Door: "api", Address: "192.0.2.7", Operation: "UpdateFleet", Reason: "Störung"},
			Kind: "fleet", ID: "fleet-1", Changes: []domainaudit.Change{{Field: "Name", Before: "a", After: "b"}},
		}
		b.entries = append(b.entries, e)
		b.head.No, b.head.Hash, b.head.Until = e.No, domainaudit.Hash(e.Stored()), e.Until
	}
}

func (b *book) Now() time.Time { return b.start.Add(2 * time.Minute) }

func (b *book) AuditHead(ctx context.Context) (domainaudit.Head, error) { return b.AuditHere(ctx) }

func (b *book) AuditHere(context.Context) (domainaudit.Head, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.head
	h.Exports = slices.Clone(h.Exports)
	return h, nil
}

func (b *book) AuditStored(_ context.Context, no uint64) (all []audit.Stored, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := no - no%domainaudit.GroupSize
	for i := range b.entries {
		if n := b.entries[i].No; n >= first && n < first+domainaudit.GroupSize && !b.gone[n] {
			all = append(all, audit.Stored{No: n, Data: b.entries[i].Stored()})
		}
	}
	return all, nil
}

func (b *book) Do(_ context.Context, cmd kernel.Command) error {
	x := cmd.(*domainaudit.Exported)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return domain.Refuse(domain.Overloaded, "the disk is full")
	}
	if b.recorded != nil {
		b.recorded(x.No)
	}
	b.head.Exports = []domainaudit.Position{{Receiver: x.Receiver, No: x.No}}
	return nil
}

func (b *book) position() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.head.Exports) == 0 {
		return 0
	}
	return b.head.Exports[0].No
}

// patience is how long an export waits for a receiver: on a busy machine, one that gets no processor in time would get messages twice.
const patience = 2 * time.Minute

// begin exports a book, until the test ends.
func begin(t *testing.T, b *book, target string, change func(*Config)) (*Exporter, *logtest.Log) {
	t.Helper()
	targets, err := Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	log := &logtest.Log{}
	c := Config{Engine: b, Targets: targets, Header: Header{Host: "muster-1", Version: "1.2.3"}, Log: slog.New(slog.NewTextHandler(log, nil))}
	if change != nil {
		change(&c)
	}
	x, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range x.workers {
		if s, ok := w.to.(*stream); ok {
			s.writeWait, s.closeWait = patience, patience
		}
	}
	x.Lead()
	t.Cleanup(x.Rest)
	return x, log
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "otlp": "otlp", "syslog+tls://log.example.com": "syslog+tls://log.example.com:6514", "syslog+tcp://192.0.2.7:1514/": "syslog+tcp://192.0.2.7:1514",
		"syslog+udp://[2001:db8::7]":                  "syslog+udp://[2001:db8::7]:514",
		"otlp  syslog+tls://log:7?ca=/a&cert=b&key=c": "otlp syslog+tls://log:7",

		"syslog://log": "scheme", "http://log": "scheme", "syslog+tls://": "no host", "syslog+tls:log": "no host", "syslog+tls://ann:secret@log": "user or password",
		"syslog+tls://log/secret": "path", "syslog+tls://log#x": "fragment", "syslog+tcp://log?ca=x": "syslog+tls only", "syslog+tls://log?secret=1": "want ca, cert and key",
		"syslog+tls://log?ca=": "with a file", "syslog+tls://log?cert=x": "both cert and key", "otlp otlp": "named twice", "syslog+tcp://a syslog+tcp://a:601": "named twice",
		"syslog+tcp://a syslog+tcp://b syslog+tcp://c syslog+tcp://d otlp": "more than 4", "syslog+tcp://" + strings.Repeat("a", 250): "longer than",
		"syslog+tls://log:secret": "not a URL", "syslog+tls://log?ca=%zz": "query",
	} {
		all, err := Parse(text)
		var names []string
		for _, x := range all {
			names = append(names, x.Name)
		}
		if err != nil {
			if !strings.Contains(err.Error(), want) || want == "" || strings.Contains(strings.ReplaceAll(err.Error(), `"secret"`, ""), "secret") {
				t.Errorf("%q: %v, want %q", text, err, want)
			}
		} else if got := strings.Join(names, " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// An unreachable receiver gets all entries later, operators are told, and the position is recorded.
func TestReceiverIsAway(t *testing.T) {
	t.Parallel()
	b := newBook(3)
	b.start = b.start.Add(-time.Hour) // of entries that wait for an hour
	r := newReceiver(t, nil)
	r.stop()
	x, log := begin(t, b, "syslog+tcp://"+r.address, nil)
	waittest.Until(t, "the log says that the receiver is away", func() bool { return strings.Contains(log.String(), "does not accept entries") })
	if b.position() != 0 {
		t.Errorf("position %d without a receiver", b.position())
	}
	if s := x.workers[0].status(); s.waiting != 3 || s.why == "" || s.failures == 0 {
		t.Errorf("%+v", s)
	}
	w := x.workers[0]
	w.mu.Lock()
	w.moved, w.since = b.Now().Add(-7*time.Minute), b.Now().Add(-8*time.Minute)
	w.mu.Unlock()
	if late := x.Late(); len(late) != 1 || late[0].Waiting != 3 || late[0].For < lateAfter || late[0].Why == "" {
		t.Errorf("%+v", late)
	}
	r.start()
	r.until(3)
	waittest.Until(t, "the position is recorded", func() bool { return b.position() == 3 })
	waittest.Until(t, "the log says that it is back", func() bool { return strings.Contains(log.String(), "accepts entries again") })
	if late := x.Late(); len(late) > 0 {
		t.Errorf("%+v", late)
	}
}

// The next term continues at the position in the state, even if the last positions could not be recorded: then entries are sent twice, and none is omitted.
func TestNextTerm(t *testing.T) {
	t.Parallel()
	b, r := newBook(300), newReceiver(t, nil)
	x, _ := begin(t, b, "syslog+tcp://"+r.address, nil)
	waittest.Until(t, "the position is recorded", func() bool { return b.position() == 300 })
	b.mu.Lock()
	b.broken = true
	b.mu.Unlock()
	b.add(2)
	r.until(302)
	x.Rest()
	if b.position() != 300 {
		t.Fatalf("position %d", b.position())
	}
	b.mu.Lock()
	b.broken = false
	b.mu.Unlock()
	x.Lead()
	waittest.Until(t, "the position is recorded", func() bool { return b.position() == 302 })
	r.check(302, 304)
}

// Missing entries are skipped: at once if they have expired. A new receiver does not count expired entries as missing.
func TestEntriesAreGone(t *testing.T) {
	t.Parallel()
	b, r := newBook(600), newReceiver(t, nil)
	for no := range uint64(301) {
		b.gone[no] = true
	}
	b.entries[300].PreviousUntil = domain.TimeOf(b.start) // entry 301
	b.gone[400], b.gone[401] = true, true                 // without an explanation
	x, log := begin(t, b, "syslog+tcp://"+r.address, nil)
	r.until(399 - 300)
	if s := x.workers[0].status(); s.gone != 0 {
		t.Errorf("a new receiver misses %d entries that had expired", s.gone)
	}
	w := x.workers[0]
	waittest.Until(t, "the worker waits for the gap", func() bool { return b.position() == 399 })
	x.Rest()
	w.turn(t.Context()) // notices the gap
	w.gapSince = w.gapSince.Add(-2 * gapPatience)
	if err := w.turn(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := w.status(); b.position() != 600 || s.gone != 2 || s.waiting != 0 || !strings.Contains(log.String(), "from=400 to=401") {
		t.Errorf("position %d, %+v\n%s", b.position(), s, log)
	}
	b.mu.Lock()
	for no := range b.gone {
		delete(b.gone, no)
	}
	b.mu.Unlock()
	b.add(3)
	b.gone[602], b.gone[603] = true, true // the last ones
	for range 3 {
		if err := w.turn(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.gapSince = w.gapSince.Add(-2 * gapPatience)
	}
	if s := w.status(); b.position() != 603 || s.gone != 4 {
		t.Errorf("position %d, %+v", b.position(), s)
	}
}

// A message has the form of RFC 5424, the whole entry where it fits, and never more than the bound.
func TestMessage(t *testing.T) {
	t.Parallel()
	d := audit.Document{No: 4711, At: time.Date(2030, 1, 2, 3, 4, 5, 678_900_000, time.FixedZone("", 3600)), Who: "AK1", Door: "api", What: "UpdateFleet", Reason: "“\U0001F525”\u00a0<b>&", Outcome: "done", Hash: "00"}
	h := Header{Host: "node 1", Version: "1.2 \"x]"}
	got := string(h.message(d))
	const want = `<109>1 2030-01-02T02:04:05.678Z node1 muster - audit [meta sequenceId="4711"][origin software="muster" swVersion="1.2x"] ` +
		`{"no":4711,"at":"2030-01-02T03:04:05.6789+01:00","who":"AK1","door":"api","operation":"UpdateFleet","reason":"\u201c\ud83d\udd25\u201d\u00a0<b>&","outcome":"done","keptUntil":"0001-01-01T00:00:00Z","hash":"00"}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	d.Outcome, d.No = "refused: NotFound", 1<<40
	if got := string(h.message(d)); !strings.HasPrefix(got, "<108>1 ") || strings.Contains(got, "sequenceId") {
		t.Error(got)
	}
	for range 32 {
		d.Changes = append(d.Changes, audit.Change{Field: strings.Repeat("é", 128), Before: strings.Repeat(`"`, 256), After: strings.Repeat("é", 128)})
	}
	m := h.message(d)
	if len(m) > MessageMax || !strings.Contains(string(m), `"changesOmitted":`) {
		t.Errorf("%d bytes: %s", len(m), m)
	}
	d.Who, d.Address, d.Agent, d.What, d.Kind, d.ID, d.Reason = d.Changes[0].Field, d.Changes[0].Before, d.Changes[0].Before, d.Changes[0].Field, d.Changes[0].Field, d.Changes[0].Field, strings.Repeat("火", 200)
	if m := h.message(d); len(m) > MessageMax {
		t.Errorf("%d bytes", len(m))
	}
}

// slow is a receiver that is not done in time with more than two groups of entries.
type slow struct{ unconfirmed int }

func (x *slow) send(_ context.Context, docs []audit.Document) (int, error) {
	x.unconfirmed += len(docs)
	return 0, nil
}

func (x *slow) confirm(context.Context) error {
	if x.unconfirmed > 2*domainaudit.GroupSize {
		return errors.New("it is not done")
	}
	x.unconfirmed = 0
	return nil
}

func (x *slow) drop() { x.unconfirmed = 0 }

// A slow receiver gets fewer entries at once, instead of the same ones again and again.
func TestSlowReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(5000)
		w := &worker{engine: b, name: "slow", to: &slow{}, log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.run(ctx)
		time.Sleep(time.Hour)
		if got := b.position(); got != 5000 {
			t.Errorf("the receiver has %d entries, want 5000", got)
		}
	})
}
