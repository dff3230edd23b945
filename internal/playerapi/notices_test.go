package playerapi_test

import (
	"os"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/flow"
)

// The AsyncAPI page has every type of notice for game servers with its data.
func TestEveryNoticeIsDescribed(t *testing.T) {
	page, err := os.ReadFile("../../docs/player-flow/asyncapi-partner.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for kind := flow.NoticeType(1); int(kind) <= flow.NoticeTypes; kind++ {
		if !strings.Contains(string(page), "{const: "+kind.String()+",") {
			t.Errorf("docs/player-flow/asyncapi-partner.yaml says nothing of %s", kind)
		}
	}
}
