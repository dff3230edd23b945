package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/search"
	"github.com/musterhq/muster/internal/domain/searchindex"
	"github.com/musterhq/muster/internal/domain/session"
)

const (
	searchRate    = 500  // a second
	searchChanges = 2000 // a second, at the same time
	searchers     = 32
	searchPage    = 20
)

// searchKinds are the searches: for large and small parts of the fleet, in each kind of order.
var searchKinds = []struct{ name, filter, order string }{
	{"free seats, any order", "hasAvailablePlayerSessions=true", ""},
	{"free seats, oldest first", "hasAvailablePlayerSessions=true", "creationTimeMillis ASC"},
	{"free seats, fullest first", "hasAvailablePlayerSessions=true", "playerSessionCount DESC"},
	{"free seats, by a property of 50,000 values", "hasAvailablePlayerSessions=true", "gameSessionProperties.rating ASC"},
	{"one in 400, any order", "gameSessionProperties.mode = 'mode-3' AND gameSessionProperties.map = 'map-7' AND playerSessionCount >= 2", ""},
	{"one in 400, by a property", "gameSessionProperties.mode = 'mode-3' AND gameSessionProperties.map = 'map-7' AND playerSessionCount >= 2", "gameSessionProperties.rating DESC"},
	{"none, by a property", "NOT (gameSessionProperties.mode <> 'mode-20') AND (maximumSessions > 300 OR gameSessionProperties.map = 'elsewhere')", "gameSessionProperties.rating ASC"},
}

// search measures searches among the ACTIVE game sessions of a fleet while they change, and their cost for writers.
func (b *bench) search(ctx context.Context) error {
	dir, err := b.freshDir("search")
	if err != nil {
		return err
	}
	c, err := openCell(ctx, dir, 0, nil)
	if err != nil {
		return err
	}
	s := &searchLoad{ctx: ctx, cell: c}
	if s.games, err = fill(ctx, c.Engine, b.sizes.coreGames, 2*b.sizes.coreGames); err == nil {
		err = s.describeGames()
	}
	if err == nil {
		err = b.searchBesideChanges(s)
	}
	if err == nil {
		err = b.changesBesideSearch(s)
	}
	return errors.Join(err, c.close())
}

// searchBesideChanges measures each kind of search separately.
func (b *bench) searchBesideChanges(s *searchLoad) error {
	for kind, k := range searchKinds {
		var writing sync.WaitGroup
		var writeErr error
		changes := newChanges(s.ctx, s.cell.Engine, s.games, callers)
		writing.Go(func() {
			_, writeErr = load{workers: callers, rate: searchChanges, warm: b.sizes.coreMeasure / 10, measure: b.sizes.coreMeasure}.
				run(s.ctx, nil, func(caller int) error { return s.change(changes, caller) })
		})
		m, err := load{workers: searchers, rate: searchRate, warm: b.sizes.coreMeasure / 10, measure: b.sizes.coreMeasure}.
			run(s.ctx, nil, func(int) error { return s.search(kind) })
		writing.Wait()
		if err == nil {
			err = writeErr
		}
		if err != nil {
			return err
		}
		p50, p99 := m.latency.quantile(0.5), m.latency.quantile(0.99)
		b.progress("  %s: %s", k.name, m)
		b.table.addFact(fmt.Sprintf("%d searches a second among %s game sessions, %s changes a second: %s, p99",
			searchRate, thousands(int64(len(s.games))), thousands(searchChanges), k.name), "10 ms", "%s (p50 %s)", milliseconds(p99), milliseconds(p50))
	}
	return nil
}

// changesBesideSearch lets writers change the state as fast as it becomes durable, with and without searches of all
// kinds in turn. It measures each repeatedly, because other work on the machine could distort a single measurement.
func (b *bench) changesBesideSearch(s *searchLoad) error {
	var alone, beside float64
	for range b.options.Rounds {
		n, err := b.changesWhile(s, false)
		if err != nil {
			return err
		}
		alone = max(alone, n)
		if n, err = b.changesWhile(s, true); err != nil {
			return err
		}
		beside = max(beside, n)
	}
	b.progress("  %.0f changes a second alone, %.0f beside searches", alone, beside)
	b.table.addFact(fmt.Sprintf("durable changes beside %d searches a second of all kinds", searchRate), "80 % of those alone",
		"%.0f %% (%s a second)", 100*beside/alone, thousands(int64(beside)))
	return nil
}

func (b *bench) changesWhile(s *searchLoad, searching bool) (perSecond float64, err error) {
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	var readers sync.WaitGroup
	var searchErr error
	if searching {
		var next atomic.Uint64
		readers.Go(func() {
			_, searchErr = load{workers: searchers, rate: searchRate, measure: time.Hour}.run(ctx, nil, func(int) error {
				return s.search(int(next.Add(1) % uint64(len(searchKinds))))
			})
		})
	}
	changes := newChanges(s.ctx, s.cell.Engine, s.games, callers)
	m, err := load{workers: callers, warm: b.sizes.coreMeasure / 5, measure: b.sizes.coreMeasure}.run(s.ctx, nil, changes.unit)
	stop()
	readers.Wait()
	if err == nil && !errors.Is(searchErr, context.Canceled) { // canceling is how the searches end
		err = searchErr
	}
	if err != nil {
		return 0, err
	}
	return m.perSecond(), nil
}

// searchLoad searches the game sessions of a cell.
type searchLoad struct {
	ctx   context.Context
	cell  *localCell
	games []localGame
}

// describeGames gives each game session a name, a mode of 20, a map of 20 and a rating of 50,000.
func (s *searchLoad) describeGames() error {
	return inParallel(len(s.games), filling, func(i int) error {
		name := "game " + strconv.Itoa(i)
		return s.cell.Do(s.ctx, &hosting.UpdateGameSession{ID: s.games[i].id, Title: &name, Properties: []session.Property{
			{Key: "mode", Value: "mode-" + strconv.Itoa(rand.IntN(20))}, {Key: "map", Value: "map-" + strconv.Itoa(rand.IntN(20))}, rating(),
		}})
	})
}

func rating() session.Property {
	return session.Property{Key: "rating", Value: strconv.Itoa(1000 + rand.IntN(50_000))}
}

// change is one change: players who come and go, and game sessions whose rating changes.
func (s *searchLoad) change(players *changes, caller int) error {
	if rand.IntN(4) > 0 {
		return players.unit(caller)
	}
	return s.cell.Do(s.ctx, &hosting.UpdateGameSession{ID: s.games[rand.IntN(len(s.games))].id, Properties: []session.Property{rating()}})
}

// search reads a first page. It begins with the texts, as in a client's request.
func (s *searchLoad) search(kind int) error {
	k := searchKinds[kind]
	q := searchindex.Query{Fleet: localFleet, Most: searchPage}
	var err error
	if q.Filter, err = search.ParseFilter(k.filter); err != nil {
		return err
	}
	if k.order == "" {
		q.Order.Start = rand.Uint64()
	} else if q.Order, err = search.ParseOrder(k.order); err != nil {
		return err
	}
	_, err = s.cell.SearchGameSessions(s.ctx, q)
	return err
}
