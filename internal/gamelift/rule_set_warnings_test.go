package gamelift

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
)

// TestValidateLogsWhatHasNoEffect: the answer has no member for warnings, and the log gets a bounded number of them.
func TestValidateLogsWhatHasNoEffect(t *testing.T) {
	var log bytes.Buffer
	service := &Service{Log: slog.New(slog.NewTextHandler(&log, nil))}
	many := ""
	for i := range 50 {
		many += `"unknown` + strings.Repeat("y", i) + `": 1, `
	}
	validate := func(extra string) {
		t.Helper()
		out, err := service.ValidateMatchmakingRuleSet(t.Context(), &gamelift.ValidateMatchmakingRuleSetInput{RuleSetBody: aws.String(
			`{` + extra + `"ruleLanguageVersion": "1.0", "teams": [{"name": "all", "minPlayers": 2, "maxPlayers": 2}]}`)})
		if err != nil || !*out.Valid {
			t.Fatalf("got %v, %v, want a valid rule set", out, err)
		}
	}
	validate("")
	if log.Len() > 0 {
		t.Errorf("logged %s of a rule set without warnings", &log)
	}
	validate(`"algoritm": {}, `)
	if !strings.Contains(log.String(), "algoritm") || !strings.Contains(log.String(), "did you mean") {
		t.Errorf("logged %s, want the misspelt name", &log)
	}
	log.Reset()
	validate(many)
	if !strings.Contains(log.String(), "count=50") || log.Len() > 1000 {
		t.Errorf("logged %d bytes, want the first few of 50: %s", log.Len(), &log)
	}
}
