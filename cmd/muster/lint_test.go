package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/settings"
)

const misspelt = `{"ruleLanguageVersion": "1.0", "algoritm": {}, "teams": [{"name": "all", "minPlayers": 2, "maxPlayers": 2}]}`

func TestLintCommand(t *testing.T) {
	dir := t.TempDir()
	odd, broken := filepath.Join(dir, "odd.json"), filepath.Join(dir, "broken.json")
	put(t, odd, misspelt)
	put(t, broken, "{\n")
	if made := mustRun(t, nil, "lint", tried+"ranked.json", tried+"ranked-patient.json"); made != "" {
		t.Errorf("got %q of rule sets without mistakes", made)
	}
	made := mustRun(t, nil, "lint", odd)
	if want := odd + `:1:44: warning: algoritm: the property is unknown here and ignored; did you mean "algorithm"?` + "\n"; made != want {
		t.Errorf("got %q, want %q", made, want)
	}
	if _, err := runForTest(t, nil, "lint", "--strict", odd); err == nil {
		t.Error("--strict: no error for a warning")
	}
	if made, err := runForTest(t, nil, "lint", broken); err == nil || !strings.Contains(made, broken+":") || !strings.Contains(made, "error: ") {
		t.Errorf("got %q, %v, want the error and a status", made, err)
	}
	made, err := runForTest(t, nil, "lint", "--json", "--request-timeout", "1m", odd, tried+"ranked.json", broken)
	var report struct{ Findings []lintFinding }
	if err == nil || json.Unmarshal([]byte(made), &report) != nil || len(report.Findings) != 4 {
		t.Fatalf("got %s, %v, want four findings", made, err)
	}
	if f := report.Findings[1]; f.File != tried+"ranked.json" && !strings.HasSuffix(f.File, "ranked.json") || f.Severity != "warning" || f.Line < 10 || !strings.Contains(f.Message, "time out after 60 s") {
		t.Errorf("got %+v, want the step at the time-out", f)
	}
}

func TestRuleSetsAreCapped(t *testing.T) {
	_, address, keys := servedForTest(t, func(s *settings.Settings) { s.LimitRuleSets, s.LimitConfigurations, s.LimitQueues = 1, 1, 1 })
	key := keys[identity.Admin]
	sdk := gamelift.New(gamelift.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + address), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(key.ID, key.Secret, ""),
	})
	ruleSet := func(name string) error {
		_, err := sdk.CreateMatchmakingRuleSet(t.Context(), &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String(name), RuleSetBody: aws.String(misspelt)})
		return err
	}
	configuration := func(name string) error {
		_, err := sdk.CreateMatchmakingConfiguration(t.Context(), &gamelift.CreateMatchmakingConfigurationInput{Name: aws.String(name), RuleSetName: aws.String("first"),
			RequestTimeoutSeconds: aws.Int32(60), AcceptanceRequired: aws.Bool(false), FlexMatchMode: "STANDALONE"})
		return err
	}
	queue := func(name string) error {
		_, err := sdk.CreateGameSessionQueue(t.Context(), &gamelift.CreateGameSessionQueueInput{Name: aws.String(name)})
		return err
	}
	for _, test := range []struct {
		create      func(string) error
		code, wants string
	}{
		{ruleSet, "LimitExceededException", "1 rule sets exist; the limit is 1"},
		{configuration, "LimitExceededException", "1 matchmaking configurations exist; the limit is 1"},
		{queue, "LimitExceededException", "1 queues exist; the limit is 1"},
	} {
		if err := test.create("first"); err != nil {
			t.Fatal(err)
		}
		if err := test.create("second"); err == nil || !strings.Contains(err.Error(), test.code) || !strings.Contains(err.Error(), test.wants) {
			t.Errorf("got %v, want %s: %s", err, test.code, test.wants)
		}
	}
}
