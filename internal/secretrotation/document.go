package secretrotation

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/keyring"
)

// The states of a generation.
const (
	Distributed = "distributed" // it is being distributed to the nodes, and signs nothing yet
	Signs       = "signs"
	Accepted    = "accepted" // its signatures are accepted until its date of last use
	Ended       = "ended"    // its signatures are refused
)

// Document is the JSON form of a generation of the secret.
type Document struct {
	Number     uint32         `json:"number"`
	State      string         `json:"state"`
	Created    time.Time      `json:"created"`
	CreatedBy  *keyring.Actor `json:"createdBy,omitempty"`
	Activated  time.Time      `json:"activated,omitzero"` // when it began to sign
	Until      time.Time      `json:"until,omitzero"`     // date of last use
	Ended      time.Time      `json:"ended,omitzero"`
	EndedBy    *keyring.Actor `json:"endedBy,omitempty"`   // absent: its date of last use was reached
	LastUse    *Use           `json:"lastUse,omitempty"`   // of one of its signatures, since a later one began to sign
	AccessKeys int            `json:"accessKeys"`          // valid keys that are derived from it
	Destroyed  bool           `json:"destroyed,omitempty"` // no node needs it any longer, so all have removed it
	WaitsFor   []string       `json:"waitsFor,omitempty"`  // nodes that do not have it yet
}

// Use is the last use of a generation, to within about a minute.
type Use struct {
	At      time.Time `json:"at"`
	Purpose string    `json:"purpose"`
}

// List returns the generations, the oldest first.
func (r *Rotator) List(ctx context.Context) ([]Document, error) {
	return r.list(ctx, r.config.Engine.Read)
}

// list is List with one of the engine's functions that read.
func (r *Rotator) list(ctx context.Context, read func(context.Context, func(*cell.View) error) error) ([]Document, error) {
	list := []Document{} // in JSON a list
	now := domain.TimeOf(r.config.Engine.Now())
	err := read(ctx, func(v *cell.View) error {
		nodes := r.nodes(v)
		for _, g := range v.SecretStandings() {
			list = append(list, documentOf(&g, now, nodes))
		}
		return nil
	})
	for _, use := range r.secrets.Uses() { // uses that this node has seen since
		at := slices.IndexFunc(list, func(d Document) bool { return d.Number == use.Number })
		if at >= 0 && (list[at].LastUse == nil || list[at].LastUse.At.Before(use.At.Std())) {
			list[at].LastUse = &Use{use.At.Std(), use.Purpose}
		}
	}
	return list, err
}

// numbered returns one of the generations.
func numbered(all []Document, number uint32) (Document, error) {
	at := slices.IndexFunc(all, func(d Document) bool { return d.Number == number })
	if at < 0 {
		return Document{}, domain.Refuse(domain.NotFound, "there is no generation %d of the secret", number)
	}
	return all[at], nil
}

func documentOf(g *access.SecretStanding, now domain.Time, nodes []string) Document {
	d := Document{Number: g.Number, State: Accepted, Created: g.Prepared.Std(), CreatedBy: keyring.ActorOf(g.By), EndedBy: keyring.ActorOf(g.EndedBy), AccessKeys: g.Keys, Destroyed: !g.Needed}
	switch {
	case g.Pending():
		d.State, d.WaitsFor = Distributed, waitsFor(g, nodes)
	case g.Signs():
		d.State = Signs
	case !g.Accepted(now):
		d.State = Ended
	}
	for _, at := range []struct {
		to   *time.Time
		from domain.Time
	}{{&d.Activated, g.Activated}, {&d.Until, g.Until}, {&d.Ended, g.Ended}} {
		if at.from != 0 {
			*at.to = at.from.Std()
		}
	}
	if g.LastUse.At != 0 {
		d.LastUse = &Use{g.LastUse.At.Std(), g.LastUse.Purpose}
	}
	return d
}

var (
	generationsDesc = prometheus.NewDesc("muster_secret_generations", "Generations of the secret of the installation that are in use: one signs, one may still be distributed to the nodes, and the others are accepted until their date of last use.", nil, nil)
	limitDesc       = prometheus.NewDesc("muster_secret_generations_limit", "Most generations of the secret that can be in use.", nil, nil)
)

// Describe implements prometheus.Collector.
func (*Rotator) Describe(to chan<- *prometheus.Desc) {
	to <- generationsDesc
	to <- limitDesc
}

// Collect implements prometheus.Collector.
func (r *Rotator) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(generationsDesc, prometheus.GaugeValue, float64(len(r.config.Secret.AcceptedGenerations())))
	to <- prometheus.MustNewConstMetric(limitDesc, prometheus.GaugeValue, access.SecretsMax)
}
