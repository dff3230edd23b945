package access

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

const (
	// ConsoleLinkLife is how long a link that signs in to the console is valid. It is long enough to copy the link from a remote shell into
	// a browser that is not running yet, and too short for a link found in a terminal's history or a chat.
	ConsoleLinkLife = 2 * time.Minute
	// ConsoleLinksMax is the most unused links that may exist.
	ConsoleLinksMax = 256
	// ConsoleLinksOfKey is how many of them may belong to one key.
	ConsoleLinksOfKey = 5

	linkLevel = 2
)

// ConsoleLink lets one browser sign in once with an access key. Its id is not secret, because the link also contains a signature.
type ConsoleLink struct {
	ID      string
	Key     string // id of the access key
	Expires domain.Time
}

// Level returns the level of the snapshot part.
func (*ConsoleLink) Level() uint { return linkLevel }

// Fields of a ConsoleLink.
func (x *ConsoleLink) Fields(c *wire.Codec) {
	c.String(1, &x.ID)
	c.Shared(2, &x.Key)
	wire.Int(c, 3, &x.Expires)
}

// IssueConsoleLink creates a link for a key, valid for ConsoleLinkLife. It removes expired links from the state.
type IssueConsoleLink struct {
	ID  string // chosen at random by the caller, 1 to 128 bytes
	Key string

	// Result
	Expires domain.Time
}

// Decide emits ConsoleLinkIssued. A repeat finds the link.
func (cmd *IssueConsoleLink) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if cmd.ID == "" || len(cmd.ID) > idMax {
		return domain.Refuse(domain.Invalid, "link %.200q: want an id of 1 to %d bytes", cmd.ID, idMax)
	}
	if err := t.mustWork(cmd.Key); err != nil {
		return err
	}
	var expired []string
	ofKey, first := 0, domain.Time(0)
	for i := range t.consoleLinks {
		switch x := &t.consoleLinks[i]; {
		case x.ID == cmd.ID && x.Key == cmd.Key:
			cmd.Expires = x.Expires
			return nil
		case x.ID == cmd.ID:
			return domain.Refuse(domain.Conflict, "link %s exists already", cmd.ID)
		case x.Expires <= t.Now:
			expired = append(expired, x.ID)
		case x.Key == cmd.Key:
			if ofKey++; ofKey == 1 {
				first = x.Expires
			}
		}
	}
	switch {
	case ofKey >= ConsoleLinksOfKey:
		return domain.Refuse(domain.LimitExceeded, "access key %s has %d links to the console that were not used, which is the limit; the first of them expires at %s", cmd.Key, ofKey, first.Std().Format(time.RFC3339))
	case len(t.consoleLinks)-len(expired) >= ConsoleLinksMax:
		return domain.Refuse(domain.LimitExceeded, "%d links to the console were not used, which is the limit; each expires after %v", ConsoleLinksMax, ConsoleLinkLife)
	}
	if len(expired) > 0 {
		t.Emit(&ConsoleLinksForgotten{expired})
	}
	cmd.Expires = t.Now.Add(ConsoleLinkLife)
	t.Emit(&ConsoleLinkIssued{ConsoleLink{ID: cmd.ID, Key: cmd.Key, Expires: cmd.Expires}})
	return nil
}

// UseConsoleLink removes a link from the state. Only the caller whose command succeeds may sign in.
type UseConsoleLink struct {
	ID string

	// Result
	Key string
}

// Decide emits ConsoleLinksForgotten.
func (cmd *UseConsoleLink) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	at := slices.IndexFunc(t.consoleLinks, func(x ConsoleLink) bool { return x.ID == cmd.ID })
	if at < 0 || t.consoleLinks[at].Expires <= t.Now {
		return domain.Refuse(domain.NotFound, "the link was used, or has expired")
	}
	key := t.consoleLinks[at].Key
	if err := t.mustWork(key); err != nil {
		return err
	}
	cmd.Key = key
	t.Emit(&ConsoleLinksForgotten{[]string{cmd.ID}})
	return nil
}

// mustWork refuses the id of a key that is not valid.
func (c *State) mustWork(id string) error {
	key, err := c.existing(id)
	if err == nil && !key.Works() {
		err = domain.Refuse(domain.Conflict, "access key %s was revoked", id)
	}
	return err
}

func (c *State) applyConsoleLink(event kernel.Event) {
	c.Touch()
	links := slices.Clone(c.consoleLinks) // a snapshot may share the old slice
	switch e := event.(type) {
	case *ConsoleLinkIssued:
		links = append(links, e.Link)
	case *ConsoleLinksForgotten:
		links = slices.DeleteFunc(links, func(x ConsoleLink) bool { return slices.Contains(e.IDs, x.ID) })
	}
	c.consoleLinks = links
}

// ConsoleLinks returns the links in the state, oldest first. They include expired ones until the next link is issued.
func (v *View) ConsoleLinks() []ConsoleLink {
	v.SawAll()
	return slices.Clone(v.c.consoleLinks)
}
