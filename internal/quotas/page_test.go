package quotas

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/quota"
)

// The page of limits has each quota with its default.
func TestLimitsPageHasTheQuotas(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	_, section, _ := strings.Cut(string(page), "## What one caller may have")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [^|]+ \\| ([^|]+) \\| ([^|]+) \\|$").FindAllStringSubmatch(section, -1) {
		rows[row[1]] = row[2:]
	}
	for _, k := range quota.Kinds() {
		row := rows[k.String()]
		if row == nil {
			t.Errorf("the page has no row of the quota %s", k)
			continue
		}
		delete(rows, k.String())
		number := strings.ReplaceAll(row[0], ",", "")
		if n := quota.Default(k); n != 0 && number != strconv.Itoa(n) || n == 0 && !strings.HasPrefix(row[0], "three quarters of `") {
			t.Errorf("%s: the page says %s, and the default is %d", k, row[0], n)
		}
	}
	for name := range rows {
		t.Errorf("the page has a quota %s, which is not in the code", name)
	}
	if quota.Most(10_000) != 7_500 || quota.Most(999) != 999 || quota.Most(1000) != 750 {
		t.Error("the page says three quarters, and all of a limit below 1,000")
	}
}
