// Package attention finds what an operator should look at, says why in a sentence, and names the next step. The console's overview shows it, and explanations of
// single objects use the same sentences.
//
// Each kind of trouble is a function over a view in a file of its own. They read counts that the state keeps, and of records a bounded number, so that looking costs the
// same at 100,000 game sessions as at none.
package attention

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/audit/export"
	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/matchmaker"
	"github.com/musterhq/muster/internal/quotas"
	"github.com/musterhq/muster/internal/secretrotation"
)

// Item is something that an operator should look at.
type Item struct {
	What string `json:"what"` // is wrong, and why: one or more sentences
	Next string `json:"next"` // step, in one or more sentences

	// Kind and ID name the object that it is about; empty for the service as a whole. Kinds are those of explanations, and "host", "queue" and "access key".
	Kind string `json:"kind,omitempty"`
	ID   string `json:"id,omitempty"`
}

// Bounds of one look.
const (
	FleetsMost  = 500  // fleets, the oldest
	CatalogMost = 1000 // aliases, queues and configurations
	ItemsMost   = 50   // of what concerns single objects
	lately      = 15 * time.Minute
)

// Found is the result of a look, the most urgent first: what concerns the whole service, players who lost their game, hosts, fleets, aliases, queues, access keys, quotas, matchmaking.
type Found struct {
	Items  []Item `json:"items"`
	Others int    `json:"others,omitempty"` // that are not in Items, because there are so many
	More   bool   `json:"more,omitempty"`   // there are fleets that were not looked at
}

func (f *Found) add(all ...Item) {
	for _, x := range all {
		if len(f.Items) >= ItemsMost {
			f.Others++
			continue
		}
		f.Items = append(f.Items, x)
	}
}

// Config is what a Finder needs.
type Config struct {
	Engine *engine.Engine
	// Reports returns what the agents that are connected here said last. nil: there are none.
	Reports func() []*agentproto.Report
	// Oldest is why the oldest tickets wait; false at a node that does not decide. nil: this process runs no matchers.
	Oldest func() (all []*matchmaker.Oldest, here bool)
	// AskLeader makes the leader answer with Answer. nil: there is no other node.
	AskLeader func(ctx context.Context) (answer []byte, err error)
	Damage    func() []string // places that the archive cannot read; nil: none
	// LogTrouble returns how many lines of the log were lost, and why it cannot be written at present; nil: not known.
	LogTrouble func() (lost uint64, why error)
	// Exports are the receivers of the audit log that are late; none at a node that does not decide. nil: there are no receivers.
	Exports func() []export.Late
	Quotas  *quotas.Desk // names holders; nil: quotas are not looked at
	// BackupAgeMax is how old the last backup may be. 0, or nil: backups are not looked at.
	BackupAgeMax func() time.Duration
	// Secrets lists the generations of the secret. nil: they are not looked at.
	Secrets func(ctx context.Context) ([]secretrotation.Document, error)
	// Cluster returns the status of this node and the other ones. nil: there is no cluster.
	Cluster func() node.Status
	Log     *slog.Logger
}

// Finder looks for troubles.
type Finder struct{ config Config }

// New makes a Finder.
func New(c Config) *Finder { return &Finder{c} }

// Agents returns what the agents that are connected here said last.
func (f *Finder) Agents() Agents {
	if f.config.Reports == nil {
		return nil
	}
	return newAgents(f.config.Reports())
}

// Find looks at the service and at everything in it.
func (f *Finder) Find(ctx context.Context) (*Found, error) {
	x := &Found{}
	x.add(service(f.config.Engine.Short(), f.config.Damage, f.config.LogTrouble)...)
	secrets, err := f.secrets(ctx)
	if err != nil {
		return x, err
	}
	x.add(secrets...)
	matches := f.atLeader(ctx)
	x.add(slices.DeleteFunc(slices.Clone(matches), func(i Item) bool { return i.Kind != "" })...)
	matches = slices.DeleteFunc(matches, func(i Item) bool { return i.Kind == "" })
	agents, now := f.Agents(), domain.TimeOf(f.config.Engine.Now())
	err = f.config.Engine.Read(ctx, func(v *cell.View) error {
		x.add(f.backups(v, now)...)
		fleets := v.Fleets(0, "", FleetsMost+1)
		if x.More = len(fleets) > FleetsMost; x.More {
			fleets = fleets[:FleetsMost]
		}
		var places, others []Item
		for i := range fleets {
			lost, events := fleetEvents(v, &fleets[i], now)
			x.add(lost...)
			others = append(others, events...)
			places = append(places, fleetPlaces(v, &fleets[i], agents, now)...)
		}
		x.add(hosts(v)...)
		x.add(places...)
		x.add(others...)
		x.add(aliases(v, agents, now)...)
		x.add(queues(v, now)...)
		x.add(keys(v, now)...)
		x.add(holders(v, f.config.Quotas)...)
		return nil
	})
	x.add(matches...)
	return x, err
}

// atLeader asks the leader, because only the leader has the pools of tickets and exports the audit log. Items without a kind are about the service.
func (f *Finder) atLeader(ctx context.Context) []Item {
	if f.config.Oldest == nil {
		return f.deciding()
	}
	all, here := f.config.Oldest()
	if here || f.config.AskLeader == nil {
		return append(f.deciding(), f.pools(ctx, all)...)
	}
	answer, err := f.config.AskLeader(ctx)
	if err != nil {
		return nil // there is none at the moment, and other pages say so
	}
	var items []Item
	if err := json.Unmarshal(answer, &items); err != nil {
		f.config.Log.Warn("the leader's items cannot be read: the overview is shown without them", "error", err)
	}
	return items
}

// deciding returns items about the service that only the leader knows.
func (f *Finder) deciding() []Item { return append(f.exports(), f.nodes()...) }

// Answer is the answer to AskLeader of another node: items as JSON.
func (f *Finder) Answer(ctx context.Context, _ []byte) ([]byte, error) {
	var all []*matchmaker.Oldest
	if f.config.Oldest != nil {
		all, _ = f.config.Oldest()
	}
	return json.Marshal(append(f.deciding(), f.pools(ctx, all)...))
}
