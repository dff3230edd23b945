package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/identity"
)

// FeedPath is the path where GET returns the events of an object and its surroundings, newest first. The query names kind and id; FeedQuery describes
// the other parameters.
const FeedPath = "feed"

// Bounds of one page of a feed. A page that examines this much without filling up is shorter, and has a next one.
const (
	feedPage   = 50
	feedMost   = 200
	feedRounds = 4    // for a filter that matches few entries
	feedEvents = 1024 // entries of the event log of each fleet in one round
	feedAudit  = 200  // entries of the audit log in one round
)

// Feed is a page of the events of an object and its surroundings.
type Feed struct {
	Kind    string      `json:"kind"`
	ID      string      `json:"id"`
	Entries []FeedEntry `json:"entries"`        // newest first
	Next    string      `json:"next,omitempty"` // value of after for the next page; empty: this is the last one
	LeftOut []string    `json:"leftOut,omitempty"`
}

// FeedEntry is one event. Words in capitals are for programs and do not change between releases.
type FeedEntry struct {
	At     time.Time `json:"at"`
	What   string    `json:"what"` // such as GAME_SESSION_ENDED, or the operation of an audit log entry
	Detail string    `json:"detail,omitempty"`
	Kind   string    `json:"kind"` // kind of the object of the event, as in an Explanation
	ID     string    `json:"id"`
	By     string    `json:"by,omitempty"`     // the actor, if known
	Reason string    `json:"reason,omitempty"` // given by the actor
	Audit  uint64    `json:"audit,omitempty"`  // number in the audit log; 0: not from there
}

// FeedQuery selects entries. Zero fields select all.
type FeedQuery struct {
	Kind, ID     string
	What         string // part of the event, its detail, actor or reason
	Of           string // kind of the event's object; "audit": audit log entries
	Since, Until time.Time
	After        feedPlace
	Limit        int
	Audit        bool // the caller may read the audit log
}

// feedPlace is a position in a feed: after Skip entries of the instant At, and after the audit log entries with numbers from Audit on.
type feedPlace struct {
	At    domain.Time
	Skip  int
	Audit uint64 // 0: none has been listed
}

func (p feedPlace) String() string { return fmt.Sprintf("%d-%d-%d", p.At, p.Skip, p.Audit) }

// parseFeedPlace parses the result of String.
func parseFeedPlace(text string) (p feedPlace, ok bool) {
	parts := strings.Split(text, "-")
	if len(parts) != 3 {
		return p, false
	}
	at, err := strconv.ParseInt(parts[0], 10, 64)
	skip, skipErr := strconv.ParseUint(parts[1], 10, 31)
	no, noErr := strconv.ParseUint(parts[2], 10, 64)
	return feedPlace{domain.Time(at), int(skip), no}, err == nil && at > 0 && domain.Time(at) < forever && skipErr == nil && noErr == nil
}

// feedQuery parses a query: kind, id, what, of, since and until in RFC 3339, after, limit.
func feedQuery(v url.Values) (q FeedQuery, err error) {
	q = FeedQuery{Kind: v.Get("kind"), ID: v.Get("id"), What: v.Get("what"), Of: v.Get("of"), Limit: feedPage}
	if q.Since, q.Until, err = period(v); err != nil {
		return q, err
	}
	if text := v.Get("after"); text != "" {
		var ok bool
		if q.After, ok = parseFeedPlace(text); !ok {
			return q, domain.Refuse(domain.Invalid, "after %.40q: want next of an earlier page", text)
		}
	}
	if text := v.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > feedMost {
			return q, domain.Refuse(domain.Invalid, "limit %.40q: want 1 to %d", text, feedMost)
		}
	}
	return q, nil
}

func (d *Door) serveFeed(w http.ResponseWriter, r *http.Request) {
	by, ok := d.authorize(w, r, nil, identity.MayLook, "look at everything")
	if !ok {
		return
	}
	w, r, traced := d.traced(w, r)
	defer traced()
	f, err := d.feedOf(r.Context(), r.URL.Query(), by.Role == identity.Admin && by.MayCall("muster:Service.ListAudit") == nil)
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	answer(w, http.StatusOK, f)
}

// Feed returns this door's answer to a query: a Feed as JSON. It includes audit log entries if the caller may read them.
func (d *Door) Feed(ctx context.Context, query url.Values, mayAudit bool) (document []byte, err error) {
	f, err := d.feedOf(ctx, query, mayAudit)
	if err != nil {
		return nil, err
	}
	return json.Marshal(f)
}

func (d *Door) feedOf(ctx context.Context, query url.Values, mayAudit bool) (*Feed, error) {
	q, err := feedQuery(query)
	if err != nil {
		return nil, err
	}
	q.Audit = mayAudit
	f := &Feed{Kind: q.Kind, ID: q.ID, Entries: []FeedEntry{}}
	if !mayAudit {
		f.LeftOut = append(f.LeftOut, "entries of the audit log: only access keys of the role admin may read them")
	}
	at, first := q.After, q.After == feedPlace{}
	if first {
		at.At = domain.TimeOf(d.engine.Now().Add(time.Hour)) // the clock may have been set back since
	}
	if !q.Until.IsZero() {
		at.At = max(0, min(at.At, domain.TimeOf(q.Until)-1)) // no record is older than 1970
	}
	known := false
	for range feedRounds {
		round, err := d.feedRound(ctx, &q, at)
		if err != nil {
			return nil, err
		}
		for _, text := range round.leftOut {
			if !slices.Contains(f.LeftOut, text) {
				f.LeftOut = append(f.LeftOut, text)
			}
		}
		known = known || round.known || len(round.entries) > 0
		for i := range round.entries {
			e := &round.entries[i]
			at = e.behind
			if !q.takes(&e.FeedEntry) {
				continue
			}
			if f.Entries = append(f.Entries, e.FeedEntry); len(f.Entries) == q.Limit && (i+1 < len(round.entries) || round.more) {
				f.Next = at.String()
				return f, nil
			}
		}
		if !round.more {
			if !known && first {
				return nil, domain.Refuse(domain.NotFound, "%s %s not found, and no record of its past exists", q.Kind, q.ID)
			}
			return f, nil
		}
		at = round.next
		if len(f.Entries) == q.Limit {
			break
		}
	}
	f.Next = at.String()
	return f, nil
}

// takes reports whether the query selects an entry of its object's feed.
func (q *FeedQuery) takes(e *FeedEntry) bool {
	if q.Of != "" && q.Of != e.Kind && (q.Of != "audit" || e.Audit == 0) {
		return false
	}
	part := strings.ToLower(q.What)
	return part == "" || slices.ContainsFunc([]string{e.What, e.Detail, e.By, e.Reason}, func(text string) bool { return strings.Contains(strings.ToLower(text), part) })
}

// feedStep is an entry with the position after it.
type feedStep struct {
	FeedEntry
	behind feedPlace
	sort   domain.Time
}

// feedRound is the result of one round of reads.
type feedRound struct {
	entries []feedStep // newest first
	known   bool       // the object is in the state or the archive
	more    bool       // there may be older entries, after next
	next    feedPlace
	leftOut []string
}

// feedRound reads a part of a feed from a position on. The part is complete: everything that a source has not read is older than the source's
// horizon, and entries at the horizon or before it wait for the next round.
func (d *Door) feedRound(ctx context.Context, q *FeedQuery, at feedPlace) (round feedRound, err error) {
	since := domain.Time(0)
	if !q.Since.IsZero() {
		since = domain.TimeOf(q.Since)
	}
	s, err := d.feedScope(ctx, q.Kind, q.ID, at.At)
	if err != nil {
		return round, err
	}
	if err := s.readEvents(ctx, max(since, s.horizon), at.At); err != nil {
		return round, err
	}
	round.known, round.leftOut = s.known, s.leftOut
	all := s.entriesOf(since, at.At)
	for skip := at.Skip; skip > 0 && len(all) > 0 && all[0].sort == at.At; skip-- {
		all = all[1:]
	}
	behindAudit := at.Audit
	if q.Audit {
		var changes []feedStep
		if changes, behindAudit, err = s.readAudit(ctx, max(since, s.horizon), at); err != nil {
			return round, err
		}
		all = append(all, changes...)
	}
	slices.SortStableFunc(all, laterFirst) // the cause comes below its effects of the same instant
	auditRead := true
	if unread := slices.IndexFunc(all, func(e feedStep) bool { return e.sort <= s.horizon }); unread >= 0 {
		auditRead = !slices.ContainsFunc(all[unread:], func(e feedStep) bool { return e.Audit != 0 })
		all = all[:unread]
	}
	place := at
	for i := range all {
		place = place.behind(&all[i])
		all[i].behind = place
	}
	round.entries = all
	if s.horizon == 0 || s.horizon < since {
		return round, nil
	}
	round.more, round.next = true, feedPlace{At: s.horizon, Audit: place.Audit}
	if place.At == s.horizon {
		round.next.Skip = place.Skip
	}
	if auditRead {
		round.next.Audit = behindAudit
	}
	if round.next == at { // one millisecond has more entries than a round reads
		round.next = feedPlace{At: at.At - 1, Audit: at.Audit}
	}
	return round, nil
}

func laterFirst(a, b feedStep) int { return cmp.Compare(b.sort, a.sort) }

// behind returns the position after an entry that follows p.
func (p feedPlace) behind(e *feedStep) feedPlace {
	if e.sort != p.At {
		p.At, p.Skip = e.sort, 0
	}
	if e.Audit != 0 {
		p.Audit = e.Audit
	} else {
		p.Skip++
	}
	return p
}
