package audit

import (
	"context"
	"encoding/hex"
	"sort"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/audit"
)

// Reader reads the log; the engine is one.
type Reader interface {
	// AuditHead returns the end of the chain.
	AuditHead(ctx context.Context) (audit.Head, error)
	// AuditStored returns the entries, in order, of the chunk that contains no. A chunk has at most audit.GroupSize numbers.
	AuditStored(ctx context.Context, no uint64) ([]Stored, error)
	Now() time.Time
}

// Stored is an entry in its stored form, whose hash the next entry contains.
type Stored struct {
	No   uint64
	Data []byte
}

// Filter selects entries. The zero Filter selects all.
type Filter struct {
	Since, Until time.Time // Until is exclusive; zero: no bound
	Who          string    // part of the principal, address or agent
	What         string    // part of the operation, or of the kind or id of what was changed
	Door         string
	Refused      bool // only attempts that were refused
	// About selects by what was changed and when; nil: all.
	About func(kind, id string, at domain.Time) bool
}

func (f *Filter) takes(e *audit.Entry) bool {
	at := e.At.Std()
	switch {
	case !f.Until.IsZero() && !at.Before(f.Until), !f.Since.IsZero() && at.Before(f.Since), f.Refused && e.Refused == "", f.Door != "" && e.By.Door != f.Door:
		return false
	}
	if f.About != nil && !f.About(e.Kind, e.ID, e.At) {
		return false
	}
	return has(f.Who, e.By.Principal, e.By.Address, e.By.Agent) && has(f.What, e.By.Operation, e.Kind, e.ID)
}

func has(part string, texts ...string) bool {
	part = strings.ToLower(part)
	for _, text := range texts {
		if strings.Contains(strings.ToLower(text), part) {
			return true
		}
	}
	return false
}

// Document is an entry as JSON, one line in an export.
type Document struct {
	No      uint64     `json:"no"`
	At      time.Time  `json:"at"`
	Who     string     `json:"who,omitempty"`
	Door    string     `json:"door"`
	Address string     `json:"address,omitempty"`
	Agent   string     `json:"agent,omitempty"`
	What    string     `json:"operation"`
	Kind    string     `json:"kind,omitempty"`
	ID      string     `json:"id,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Outcome string     `json:"outcome"` // "done", or "refused: " and why
	Count   uint64     `json:"count,omitempty"`
	Last    *time.Time `json:"last,omitempty"` // of the last of Count attempts
	Changes []Change   `json:"changes,omitempty"`
	Until   time.Time  `json:"keptUntil"`
	Hash    string     `json:"hash"` // SHA-256, which the next entry contains; hexadecimal
	Before  string     `json:"previousHash,omitempty"`
}

// Change is one field of what was changed.
type Change struct {
	Field  string `json:"field"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

func documentOf(e *audit.Entry, stored []byte) Document {
	d := Document{
		No: e.No, At: e.At.Std().UTC(), Who: e.By.Principal, Door: e.By.Door, Address: e.By.Address, Agent: e.By.Agent, What: e.By.Operation, Kind: e.Kind, ID: e.ID,
		Reason: e.By.Reason, Outcome: "done", Count: e.Count, Until: e.Until.Std().UTC(), Hash: hex.EncodeToString(audit.Hash(stored)), Before: hex.EncodeToString(e.Previous),
	}
	if e.Refused != "" {
		d.Outcome = "refused: " + e.Refused
	}
	if e.Last != 0 {
		d.Last = new(e.Last.Std().UTC())
	}
	for _, x := range e.Changes {
		d.Changes = append(d.Changes, Change(x))
	}
	return d
}

// Page is a page of entries, the latest first.
type Page struct {
	Entries []Document `json:"entries"`
	Next    uint64     `json:"next,omitempty"` // the next page has lower numbers than this; 0: there is none
	// Reached is the time of the oldest entry that was examined; zero: there was none.
	Reached time.Time `json:"-"`
}

// scanMax bounds the entries that are examined for one page, so that a filter with few matches does not hold up the service.
const scanMax = 64 * audit.GroupSize

// emptyMax is how many consecutive chunks may be missing before a reader considers all older ones expired.
const emptyMax = 4

// Read returns up to limit entries with numbers below `below` (0: from the last one on), the latest first. A page may have fewer although there is a next one.
func Read(ctx context.Context, r Reader, f Filter, below uint64, limit int) (page Page, err error) {
	head, err := r.AuditHead(ctx)
	if err != nil {
		return page, err
	}
	if below == 0 || below > head.No+1 {
		below = head.No + 1
	}
	page.Entries = []Document{}
	empty := 0
	for scanned := 0; below > 1; scanned += audit.GroupSize {
		if scanned >= scanMax {
			page.Next = below
			return page, nil
		}
		some, err := r.AuditStored(ctx, below-1)
		if err != nil {
			return page, err
		}
		for i := len(some) - 1; i >= 0; i-- {
			if some[i].No >= below {
				continue
			}
			e, err := audit.Decode(some[i].Data)
			if err != nil {
				continue // Verify reports it
			}
			if page.Reached = e.At.Std(); !f.Since.IsZero() && page.Reached.Before(f.Since) {
				return page, nil
			}
			if f.takes(&e) {
				if len(page.Entries) == limit {
					page.Next = page.Entries[limit-1].No
					return page, nil
				}
				page.Entries = append(page.Entries, documentOf(&e, some[i].Data))
			}
		}
		first := below - 1 - (below-1)%audit.GroupSize // of the chunk
		if empty++; len(some) > 0 {
			empty = 0
		} else if empty == emptyMax { // older ones have expired
			return page, nil
		}
		below = max(first, 1)
	}
	return page, nil
}

// Verification is the result of Verify.
type Verification struct {
	Node     string   `json:"node,omitempty"`   // of the cluster, whose log was checked
	Others   []string `json:"others,omitempty"` // nodes of the cluster
	First    uint64   `json:"first,omitempty"`  // number of the oldest entry that is kept
	Last     uint64   `json:"last"`
	Entries  uint64   `json:"entries"`
	Hash     string   `json:"hash,omitempty"` // of the last entry
	Problems []string `json:"problems"`
}

// Anchor is the hash of an entry from an earlier verification or an export.
type Anchor struct {
	No   uint64
	Hash []byte
}

// Verify checks the whole log of this node. It refuses an anchor whose entry has expired, because a check against it would prove nothing.
func Verify(ctx context.Context, r Reader, anchor *Anchor) (Verification, error) {
	head, err := r.AuditHead(ctx)
	if err != nil {
		return Verification{}, err
	}
	chain := audit.Chain{Now: domain.TimeOf(r.Now())}
	oldest, err := oldestChunk(ctx, r, head, chain.Now)
	if err != nil {
		return Verification{}, err
	}
	for chunk := oldest; chunk*audit.GroupSize <= head.No && head.No > 0; chunk++ {
		some, err := r.AuditStored(ctx, chunk*audit.GroupSize)
		if err != nil {
			return Verification{}, err
		}
		for _, x := range some {
			if x.No > head.No { // recorded meanwhile
				break
			}
			chain.Add(x.No, x.Data)
			if anchor != nil && anchor.No == x.No {
				chain.Anchor(x.No, anchor.Hash, x.Data)
			}
		}
	}
	chain.End(head)
	if anchor != nil && len(chain.Problems) == 0 && anchor.No <= head.No && (chain.Entries == 0 || anchor.No < chain.First) {
		return Verification{}, domain.Refuse(domain.Invalid, "anchor: entry %d has expired, and the oldest one still kept is %d: want a later one", anchor.No, chain.First)
	}
	if anchor != nil && anchor.No > head.No {
		chain.Problems = append(chain.Problems, audit.Problem{First: anchor.No, Last: anchor.No, What: "is not in the log, although it was noted"})
	}
	v := Verification{First: chain.First, Last: head.No, Entries: chain.Entries, Hash: hex.EncodeToString(head.Hash), Problems: []string{}}
	for _, p := range chain.Problems {
		v.Problems = append(v.Problems, p.String())
	}
	return v, nil
}

// Missing reports the entries from `from` on that are not in the log: none if next is `from`; otherwise all before next, which is the first that
// exists; 0: none exists. It looks at the oldest entries first, because expired ones are what is missing most often.
func Missing(ctx context.Context, r Reader, head audit.Head, from uint64) (next uint64, err error) {
	oldest, err := oldestChunk(ctx, r, head, domain.TimeOf(r.Now()))
	if err != nil {
		return 0, err
	}
	for chunk := max(oldest, from/audit.GroupSize); chunk <= head.No/audit.GroupSize; chunk++ {
		some, err := r.AuditStored(ctx, chunk*audit.GroupSize)
		if err != nil {
			return 0, err
		}
		for _, x := range some {
			if x.No >= from && x.No <= head.No {
				return x.No, nil
			}
		}
	}
	return 0, nil
}

// DocumentOf converts a stored entry to a Document.
func DocumentOf(x Stored) (Document, error) {
	e, err := audit.Decode(x.Data)
	return documentOf(&e, x.Data), err
}

// oldestChunk returns a chunk such that all entries before it have expired, so that a check does not look for every entry that ever existed. Entries
// expire in order, so the first chunk with entries is found by binary search. A gap misleads that search: the entry after the gap then says that its
// predecessor has not expired, and the check starts at the very first chunk.
func oldestChunk(ctx context.Context, r Reader, head audit.Head, now domain.Time) (uint64, error) {
	var failed error
	var first *Stored // entry of the chunk that was found last
	chunks := int(head.No/audit.GroupSize) + 1
	oldest := sort.Search(chunks, func(chunk int) bool {
		if failed != nil {
			return true
		}
		some, err := r.AuditStored(ctx, uint64(chunk)*audit.GroupSize)
		if failed = err; len(some) == 0 {
			return false
		}
		first = &some[0]
		return true
	})
	if failed != nil || first == nil {
		return 0, failed
	}
	if e, err := audit.Decode(first.Data); err != nil || e.PreviousUntil > now {
		return 0, nil
	}
	return uint64(oldest), nil
}
