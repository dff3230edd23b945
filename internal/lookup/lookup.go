// Package lookup finds the objects that a text may mean: an id, an ARN, a name, or a part of a name. The operators' API and the console both ask it, so the same text leads to the same object in
// a terminal, in a program and in the palette.
//
// Kinds with few objects are searched in the state by id and name; of each kind the first ones are compared with the text. Kinds with millions of objects are found only by exact id.
package lookup

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
)

// Bounds of a search.
const (
	BytesMax = 1024 // of a text: ARNs of game sessions are the longest ids
	Looks    = 500  // objects of a kind whose names are compared
)

// Kinds of objects beside those that the operators' API explains.
const (
	Host          = "host"
	Queue         = "queue"
	Configuration = "configuration" // of matchmaking
	Build         = "build"
	AccessKey     = "access-key"
	PlayerSession = "player-session" // its ID is that of its game session
)

// Object is what a text may mean.
type Object struct {
	Kind  string
	ID    string
	Name  string // for people
	Exact bool   // the text is its whole id or name
	On    string // of a host: FLEET/COMPUTE that it serves as; empty: it serves none
}

// Search is what is looked for.
type Search struct {
	Text  string
	Parts bool // also objects with the text as a part of their names
	Keys  bool // also access keys
	Deep  bool // also a server process or a compute by its last name alone, which takes a look at each compute
}

// Finder finds objects.
type Finder struct {
	Engine *engine.Engine
	// Explain returns the id of an object that the operators' API explains, whose error is a *domain.Refusal if there is none.
	Explain func(ctx context.Context, kind, id string) (is string, err error)
}

// Find yields the objects that a text may mean, those that people mean most often first, until yield returns false.
func (f *Finder) Find(ctx context.Context, s Search, yield func(Object) bool) error {
	s.Text = strings.TrimSpace(s.Text)
	if s.Text == "" || len(s.Text) > BytesMax {
		return domain.Refuse(domain.Invalid, "id %.40q… has %d bytes; want 1 to %d", s.Text, len(s.Text), BytesMax)
	}
	id, kinds := exactKinds(&s)
	x := &matching{whole: []string{strings.ToLower(s.Text), strings.ToLower(id)}, parts: s.Parts}
	if !strings.Contains(s.Text, ":gamesession/") {
		if err := f.Engine.Read(ctx, func(v *cell.View) error { x.inState(v, id, s.Keys); return nil }); err != nil {
			return err
		}
	}
	for _, o := range x.found {
		if !yield(o) {
			return nil
		}
	}
	for _, kind := range kinds {
		is, err := f.Explain(ctx, kind, id)
		if _, refused := errors.AsType[*domain.Refusal](err); refused {
			continue
		}
		if err != nil {
			return err
		}
		if !yield(Object{Kind: kind, ID: cmp.Or(is, id), Name: cmp.Or(is, id), Exact: true}) {
			return nil
		}
	}
	if p, err := domain.ParseID[domain.PlayerSessionID](id); err == nil {
		session, err := f.Engine.PlayerSession(ctx, p)
		if _, refused := errors.AsType[*domain.Refusal](err); err != nil && !refused {
			return err
		}
		if err == nil && !yield(Object{Kind: PlayerSession, ID: string(session.GameID), Name: id, Exact: true}) {
			return nil
		}
	}
	return f.player(ctx, s.Text, yield)
}

// exactKinds returns the id in a text, without what stands before it in an ARN, and the kinds of objects that it may be that are found by their exact ids.
func exactKinds(s *Search) (id string, kinds []string) {
	id = s.Text
	if game, ok := session.CutARN(id); ok {
		return string(game), []string{"game-session"}
	}
	if strings.HasPrefix(id, "arn:") {
		id = id[strings.LastIndexByte(id, '/')+1:]
	}
	switch {
	case strings.HasPrefix(id, "fleet-") && strings.Contains(id, "/"):
		return id, []string{"process", "compute", "game-session"}
	case s.Deep:
		return id, []string{"ticket", "placement", "process", "compute", "party", "game-instance"}
	}
	return id, []string{"ticket", "placement", "party", "game-instance"}
}

// player yields the player with an id who has left a trace.
func (f *Finder) player(ctx context.Context, id string, yield func(Object) bool) error {
	sessions, _, err := f.Engine.PlayersNamed(ctx, id, engine.PlayerPlace{}, 1)
	if err != nil {
		return err
	}
	if len(sessions) == 0 {
		if _, err := f.Explain(ctx, "player", id); err != nil {
			if _, refused := errors.AsType[*domain.Refusal](err); refused {
				return nil
			}
			return err
		}
	}
	yield(Object{Kind: "player", ID: id, Name: id, Exact: true})
	return nil
}

// matching collects the objects of the state whose names match.
type matching struct {
	whole []string // what an exact name is, in lower case
	parts bool
	found []Object
}

// add adds an object if one of its names is the text, or contains it where parts are wanted.
func (x *matching) add(o Object, names ...string) {
	for _, name := range append(names, o.ID, o.Name) {
		name = strings.ToLower(name)
		o.Exact = o.Exact || slices.Contains(x.whole, name)
		if o.Exact || x.parts && strings.Contains(name, x.whole[0]) {
			x.found = append(x.found, o)
			return
		}
	}
}

// inState looks at what the state has by id or name: objects with just this id, and the first ones of each kind by their names.
func (x *matching) inState(v *cell.View, id string, keys bool) {
	fleets := v.Fleets(0, "", Looks)
	if f, ok := v.Fleet(id); ok {
		fleets = append([]fleet.Fleet{f}, slices.DeleteFunc(fleets, func(other fleet.Fleet) bool { return other.ID == f.ID })...)
	}
	for _, f := range fleets {
		x.add(Object{Kind: "fleet", ID: f.ID, Name: cmp.Or(f.Name, f.ID)})
	}
	hosts := v.HostsAfter("", Looks)
	if !x.parts {
		hosts = v.Hosts()
	}
	for _, h := range hosts {
		o := Object{Kind: Host, ID: h.ID, Name: h.Name}
		if fleetID, compute, ok := v.Serves(h.ID); ok {
			o.On = fleetID + "/" + compute
		}
		x.add(o)
	}
	for _, q := range v.Queues("", Looks) {
		x.add(Object{Kind: Queue, ID: q.Name, Name: q.Name})
	}
	for _, a := range v.Aliases(catalog.Place{}, Looks, func(a *fleet.Alias) bool { return a.ID != id }) {
		x.add(Object{Kind: "alias", ID: a.ID, Name: a.Name})
	}
	if a, ok := v.Alias(id); ok {
		x.add(Object{Kind: "alias", ID: a.ID, Name: a.Name})
	}
	for _, f := range fleets {
		if _, ok := v.Compute(f.ID, id); ok {
			x.add(Object{Kind: "compute", ID: f.ID + "/" + id, Name: id + " in " + cmp.Or(f.Name, f.ID)}, id)
		}
	}
	for _, c := range v.Configurations("", "", Looks) {
		x.add(Object{Kind: Configuration, ID: c.Name, Name: c.Name})
	}
	for _, b := range v.Builds(catalog.Place{}, Looks, func(b *fleet.Build) bool { return b.ID != id }) {
		x.add(Object{Kind: Build, ID: b.ID, Name: cmp.Or(b.Name, b.ID)})
	}
	if b, ok := v.Build(id); ok {
		x.add(Object{Kind: Build, ID: b.ID, Name: cmp.Or(b.Name, b.ID)})
	}
	if keys {
		for _, k := range v.AccessKeys() {
			x.add(Object{Kind: AccessKey, ID: k.ID, Name: cmp.Or(k.Name, k.ID)})
		}
	}
}
