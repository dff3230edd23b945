package operator

import (
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
)

// AuditPath is the path of the audit log: GET with the query of audit.Filter answers with an audit.Page, and GET AuditPath/verify checks the whole
// log.
const AuditPath = "audit"

// Entries on a page.
const (
	auditPage = 100
	auditMost = 1000
)

// auditRoutes registers the paths of the audit log. Only administrators may read it, because it shows people's addresses.
func (d *Door) auditRoutes() {
	d.handle("GET "+AuditPath, d.forAdmins("read the audit log", d.listAudit))
	d.handle("GET "+AuditPath+"/verify", d.forAdmins("read the audit log", d.verifyAudit))
}

func (d *Door) listAudit(w http.ResponseWriter, r *http.Request, _ access.Actor, _ []byte) error {
	q := r.URL.Query()
	f, err := AuditFilter(q)
	if err != nil {
		return err
	}
	below, limit := uint64(0), auditPage
	if text := q.Get("below"); text != "" {
		if below, err = strconv.ParseUint(text, 10, 64); err != nil {
			return domain.Refuse(domain.Invalid, "below %.40q: want the number of an entry", text)
		}
	}
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > auditMost {
			return domain.Refuse(domain.Invalid, "limit %.40q: want 1 to %d", text, auditMost)
		}
	}
	page, err := audit.Read(r.Context(), d.engine, f, below, limit)
	return reply(w, http.StatusOK, page, err)
}

// AuditFilter parses a filter from a query: since and until are times in RFC 3339; who, what, door; refused is true or absent. The error is a
// *domain.Refusal.
func AuditFilter(q url.Values) (f audit.Filter, err error) {
	if f.Since, f.Until, err = period(q); err != nil {
		return f, err
	}
	f.Who, f.What, f.Door, f.Refused = q.Get("who"), q.Get("what"), q.Get("door"), q.Get("refused") == "true"
	if f.Door != "" && !slices.Contains(audit.Doors, f.Door) {
		return f, domain.Refuse(domain.Invalid, "door %.40q: want one of %s", f.Door, strings.Join(audit.Doors, ", "))
	}
	return f, nil
}

// period parses since and until of a query; zero: no bound.
func period(q url.Values) (since, until time.Time, err error) {
	for _, at := range []struct {
		name string
		to   *time.Time
	}{{"since", &since}, {"until", &until}} {
		if text := q.Get(at.name); text != "" {
			if *at.to, err = time.Parse(time.RFC3339, text); err != nil {
				return since, until, domain.Refuse(domain.Invalid, "%s %.40q: want a time such as 2030-01-02T03:04:05Z", at.name, text)
			}
		}
	}
	return since, until, nil
}

// verifyAudit checks the log of this node, or of another cluster node that the query names.
func (d *Door) verifyAudit(w http.ResponseWriter, r *http.Request, _ access.Actor, _ []byte) error {
	nodes := d.config.Nodes
	if node := r.URL.Query().Get("node"); node != "" && (nodes == nil || node != nodes.Self()) {
		if nodes == nil || nodes.Forwarded(r) || !slices.Contains(nodes.Others(), node) {
			return domain.Refuse(domain.NotFound, "node %.100q: want the id of a node of the cluster; muster cluster lists them", node)
		}
		nodes.Forward(w, r, node, d.config.Private(r), func(err error) {
			d.refuse(w, r, domain.Refuse(domain.Overloaded, "node %s cannot be reached: its audit log was not checked", node))
		})
		return nil
	}
	var anchor *audit.Anchor
	if text := r.URL.Query().Get("anchor"); text != "" {
		no, hash, _ := strings.Cut(text, ":")
		n, numberErr := strconv.ParseUint(no, 10, 64)
		sum, hashErr := hex.DecodeString(hash)
		if numberErr != nil || n == 0 || hashErr != nil || len(sum) != 32 {
			return domain.Refuse(domain.Invalid, "anchor %.100q: want NUMBER:HASH, as an earlier check or an export showed them", text)
		}
		anchor = &audit.Anchor{No: n, Hash: sum}
	}
	v, err := audit.Verify(r.Context(), d.engine, anchor)
	if err == nil && nodes != nil {
		v.Node, v.Others = nodes.Self(), nodes.Others()
	}
	return reply(w, http.StatusOK, v, err)
}
