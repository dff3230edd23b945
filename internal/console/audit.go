package console

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/identity"
)

// auditPage is how many entries a page shows.
const auditPage = 50

// errAdminOnly refuses the audit log, which has addresses of people, to other roles.
var errAdminOnly = errors.New("only access keys of the role admin may read the audit log")

type auditList struct {
	audit.Page
	Since, Until string // as a person wrote them
	Who, What    string
	Refused      bool
	Problem      string // of a time that cannot be read
	Next         string // URL of the next page; empty: there is none
}

// audit lists the audit log, the latest entry first.
func (d *Door) audit(r *http.Request) (*content, error) {
	if key, _, _ := d.session(r); key.Role != identity.Admin {
		return nil, errAdminOnly
	}
	q := r.URL.Query()
	x := auditList{Since: q.Get("since"), Until: q.Get("until"), Who: q.Get("who"), What: q.Get("what"), Refused: q.Get("refused") == "true"}
	c := &content{Title: "Audit log", Section: "audit", page: "audit", Data: &x, Command: "muster audit"}
	f := audit.Filter{Who: x.Who, What: x.What, Refused: x.Refused}
	for _, at := range []struct {
		text string
		to   *time.Time
	}{{x.Since, &f.Since}, {x.Until, &f.Until}} {
		if at.text == "" {
			continue
		}
		var err error
		if *at.to, err = dayOf(at.text); err != nil {
			x.Problem = "“" + at.text + "” is no time: write 2030-01-02, or 2030-01-02T03:04 in UTC."
			return c, nil
		}
	}
	below, _ := strconv.ParseUint(q.Get("below"), 10, 64) // something else begins with the last entry
	var err error
	if x.Page, err = audit.Read(r.Context(), d.engine, f, below, auditPage); err != nil {
		return nil, err
	}
	if x.Page.Next != 0 {
		next := url.Values{}
		for _, name := range []string{"since", "until", "who", "what", "refused"} {
			if text := q.Get(name); text != "" {
				next.Set(name, text)
			}
		}
		next.Set("below", strconv.FormatUint(x.Page.Next, 10))
		x.Next = Prefix + "/audit?" + next.Encode()
	}
	return c, nil
}

// dayOf reads a day or a time of UTC.
func dayOf(text string) (at time.Time, err error) {
	for _, form := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if at, err = time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	return at, err
}
