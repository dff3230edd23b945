package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// TestAuditLogPage: administrators can read the log, page by page and filtered. Other roles cannot.
func TestAuditLogPage(t *testing.T) {
	x := newDesk(t)
	x.keys.Publish(keysNamed("LOOK", access.ReadOnly, "BACK", access.Backend, "ADMIN", access.Admin))
	for n := range auditPage + 1 {
		ctx := audit.With(t.Context(), audit.Origin{Principal: "ADMIN", Door: audit.DoorAPI, Address: "192.0.2.7", Operation: "CreateLocation", Reason: "<b>because</b>"})
		if err := x.engine.Do(ctx, &hosting.CreateLocation{Name: fmt.Sprintf("custom-%03d", n), Region: "us-east-1"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"LOOK", "BACK"} {
		if r := x.get("/console/audit", x.signedInAs(key)); r.StatusCode != http.StatusForbidden || strings.Contains(text(t, r), "192.0.2.7") {
			t.Errorf("%s: status %d", key, r.StatusCode)
		}
	}
	admin := x.signedInAs("ADMIN")
	first := text(t, x.get("/console/audit", admin))
	if !strings.Contains(first, "custom-050") || strings.Contains(first, "custom-000") || !strings.Contains(first, "&lt;b&gt;because") || !strings.Contains(first, "/console/audit?below=2") {
		t.Errorf("the first page is %s", first)
	}
	if second := text(t, x.get("/console/audit?below=2", admin)); !strings.Contains(second, "custom-000") || strings.Contains(second, "custom-001") || strings.Contains(second, "Next page") {
		t.Errorf("the second page is %s", second)
	}
	if some := text(t, x.get("/console/audit?what=custom-007&who=admin&since=2020-01-01", admin)); !strings.Contains(some, "custom-007") || strings.Contains(some, "custom-008") {
		t.Errorf("the filtered page is %s", some)
	}
	if wrong := text(t, x.get("/console/audit?since=yesterday", admin)); !strings.Contains(wrong, "Since: “yesterday” is no time") || strings.Contains(wrong, "custom-007") {
		t.Errorf("the page with a wrong time is %s", wrong)
	}
}
