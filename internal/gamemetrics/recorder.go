package gamemetrics

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/matchmaker"
	"github.com/musterhq/muster/internal/series"
)

const (
	// subjectsMax bounds the queues, configurations, groups and locations of fleets that have series of their own. The events of all others count for a subject named Other.
	subjectsMax = 200
	// rulesMax bounds the rules that have series of their own: those with the most evaluations. The API's documentation has the same limit.
	rulesMax = 50
	// Other is the name of the subject for everything beyond these bounds. No fleet id and no custom location has this name.
	Other = "other"
)

// Config is what a Recorder needs.
type Config struct {
	Engine *engine.Engine
	Rules  func() []matchmaker.RuleEvaluations
	Hosts  func() []HostUse                            // the agents' latest measurements, at most one for each compute; nil: none
	Store  *series.Store                               // nil: no series are stored
	Beside func() (points []series.Point, undo func()) // returns further points of the finished minute; nil: none. undo reports that they were not stored
	Short  func() error                                // returns why nothing should be written now, such as a full disk
	Log    *slog.Logger
}

// Recorder counts events, and reads the state when its metrics are requested. It is a prometheus.Collector.
//
// In a cluster, each node has the state and receives each committed event, so all have the same figures, which must not be added up. Only the leader evaluates
// rules and counts them.
type Recorder struct {
	config   Config
	unfollow func()
	stop     context.CancelFunc
	keeping  sync.WaitGroup
	failing  bool // the last minute could not be written

	// reading is held from reading what the matchers and hosts have counted until that is counted here, so that no reader counts an older reading after a newer one. It is
	// locked before mu: matchers hold their locks while they read the state, and follow holds mu while it does.
	reading sync.Mutex

	mu       sync.Mutex
	counts   map[key]*count
	times    map[key]*times
	subjects [Group + 1]map[[2]string]bool // subjects with series of their own, by kind
	open     openMatches
	computes map[[2]string]string // locations of computes, by fleet and name
	rules    map[[2]string]matchmaker.RuleEvaluations
	hosts    map[[2]string]counted // by fleet and compute
}

// key is a counter or duration of a subject.
type key struct {
	metric *Definition
	a, b   string // the subject's names, in the order of the labels; b is "" where one is enough
}

// count is a counter.
type count struct {
	total   float64 // since the installation began to count it
	written float64 // the part of it that finished minutes contain
}

// times is a duration. Its buckets are not cumulative.
type times struct {
	total   series.Total
	buckets [len(bounds) + 1]uint64
	minute  series.Stat
	written [len(bounds) + 1]uint64 // the part of the buckets that finished minutes contain
}

// bounds are the upper bounds of the buckets of durations, in seconds.
var bounds = [...]float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600}

// Start begins to count. Close the Recorder before the engine.
func Start(c Config) *Recorder {
	r := &Recorder{config: c, counts: map[key]*count{}, times: map[key]*times{}, computes: map[[2]string]string{}, rules: map[[2]string]matchmaker.RuleEvaluations{}, hosts: map[[2]string]counted{}}
	for of := range r.subjects {
		r.subjects[of] = map[[2]string]bool{}
	}
	r.open.reset()
	if c.Store != nil {
		r.restore()
	}
	r.unfollow = c.Engine.Follow(followed, r.follow)
	r.findOpen()
	ctx, stop := context.WithCancel(background)
	r.stop = stop
	first := r.minute() // here, because a minute may have passed by the time the goroutine runs
	r.keeping.Go(func() { r.keep(ctx, first) })
	return r
}

// Close counts all events that were committed before, and writes the unfinished minute.
func (r *Recorder) Close() {
	r.unfollow()
	r.stop()
	r.keeping.Wait()
}

// add adds to a counter. The caller holds r.mu.
func (r *Recorder) add(d *Definition, a, b string, n float64) {
	k := r.keyOf(d, a, b)
	c := r.counts[k]
	if c == nil {
		c = &count{}
		r.counts[k] = c
	}
	c.total += n
}

// took adds a sample to a duration. The caller holds r.mu.
func (r *Recorder) took(d *Definition, a string, from, to domain.Time) {
	k := r.keyOf(d, a, "")
	t := r.times[k]
	if t == nil {
		t = &times{}
		r.times[k] = t
	}
	seconds := max(0, to.Sub(from).Seconds())
	t.total.Sum += seconds
	t.total.Count++
	t.minute.Add(series.Of(seconds))
	i := 0
	for i < len(bounds) && seconds > bounds[i] {
		i++
	}
	t.buckets[i]++
}

// keyOf returns the key of a subject, or of Other if too many have series of their own.
func (r *Recorder) keyOf(d *Definition, a, b string) key {
	names := [2]string{a, b}
	known := r.subjects[d.Of]
	if !known[names] {
		if len(known) >= subjectsMax {
			a = Other
			if b != "" {
				b = Other
			}
			return key{d, a, b}
		}
		known[names] = true
	}
	return key{d, a, b}
}

// countRules counts the matchers' evaluations since the last call. The caller holds r.mu.
func (r *Recorder) countRules(all []matchmaker.RuleEvaluations) {
	next := make(map[[2]string]matchmaker.RuleEvaluations, len(all))
	for _, x := range all {
		names := [2]string{x.Configuration, x.Rule}
		next[names] = x
		was := r.rules[names]
		if x.Passed < was.Passed || x.Failed < was.Failed { // the matchers were restarted
			was = matchmaker.RuleEvaluations{}
		}
		r.addRule(rulesPassed, names, float64(x.Passed-was.Passed))
		r.addRule(rulesFailed, names, float64(x.Failed-was.Failed))
	}
	r.rules = next
}

func (r *Recorder) addRule(d *Definition, names [2]string, n float64) {
	k := key{d, names[0], names[1]}
	c := r.counts[k]
	if c == nil {
		c = &count{}
		r.counts[k] = c
	}
	c.total += n
}

// followed are the events that count.
var followed = kernel.Kinds(followedEvents...)

// follow counts the events of one journal entry.
func (r *Recorder) follow(committed engine.Committed) {
	if committed.Gap {
		r.findOpen()
		return
	}
	for all := committed.Events; len(all) > 0; {
		n := min(len(all), eventsAtOnce)
		r.count(all[:n])
		all = all[n:]
	}
}

// eventsAtOnce bounds the events that are counted under one lock of the state, which a large journal entry would otherwise hold for long.
const eventsAtOnce = 256

var background = context.Background()

// cutLocation returns the location in the id of a game session.
func cutLocation(game string) (fleet, location string) {
	fleet, rest, _ := strings.Cut(game, "/")
	location, _, _ = strings.Cut(rest, "/")
	return fleet, location
}

// rounded removes the noise of floating-point sums from a number of seconds.
func rounded(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
