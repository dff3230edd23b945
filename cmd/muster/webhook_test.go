package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/settings"
	"github.com/musterhq/muster/internal/webhook"
)

type delivery struct {
	path, body, signature string
}

// A placement is told to both kinds of webhooks, and the receiver does what the guide says: it confirms the topic, and
// checks the signature with the key that the command shows.
func TestWebhooks(t *testing.T) {
	deliveries := make(chan delivery, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			deliveries <- delivery{r.URL.Path, string(body), r.Header.Get(webhook.SignatureHeader)}
		}
	}))
	t.Cleanup(receiver.Close)
	const topic = "arn:aws:sns:eu-central-1:000000000000:placements"
	dir, address, keys := servedForTest(t, func(s *settings.Settings) {
		s.NotifyEvents, s.NotifyTopics = receiver.URL+"/events", topic+"="+receiver.URL+"/topic"
	})
	url, admin := "http://"+address, keys[identity.Admin]
	sdk := gamelift.New(gamelift.Options{
		BaseEndpoint: &url, Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider(admin.ID, admin.Secret, ""),
	})
	if _, err := sdk.CreateGameSessionQueue(t.Context(), &gamelift.CreateGameSessionQueueInput{Name: aws.String("q"), NotificationTarget: aws.String(topic)}); err != nil {
		t.Fatal(err)
	}
	if _, err := sdk.StartGameSessionPlacement(t.Context(), &gamelift.StartGameSessionPlacementInput{
		PlacementId: aws.String("p1"), GameSessionQueueName: aws.String("q"), MaximumPlayerSessionCount: aws.Int32(2),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := sdk.StopGameSessionPlacement(t.Context(), &gamelift.StopGameSessionPlacementInput{PlacementId: aws.String("p1")}); err != nil {
		t.Fatal(err)
	}
	signing := map[string]string{
		"/events": strings.TrimSpace(mustRun(t, nil, "webhook-key", "--data", dir, "events")),
		"/topic":  strings.TrimSpace(mustRun(t, nil, "webhook-key", "--data", dir, topic)),
	}
	told := map[string]bool{}
	for len(told) < 2 {
		var d delivery
		select {
		case d = <-deliveries:
		case <-time.After(time.Minute):
			t.Fatalf("told so far: %v", told)
		}
		at, mac, _ := strings.Cut(strings.TrimPrefix(d.signature, "t="), ",v1=")
		want := hmac.New(sha256.New, []byte(signing[d.path]))
		want.Write([]byte(at + "." + d.body))
		if mac != hex.EncodeToString(want.Sum(nil)) {
			t.Errorf("%s: signature %q does not fit", d.path, d.signature)
		}
		var m struct{ Type, SubscribeURL, Message string }
		if err := json.Unmarshal([]byte(d.body), &m); err != nil {
			t.Fatal(err)
		}
		if m.Type == "SubscriptionConfirmation" {
			answer, err := http.Get(m.SubscribeURL)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				t.Fatalf("%s: %s", m.SubscribeURL, answer.Status)
			}
			continue
		}
		if m.Type == "Notification" {
			d.body = m.Message
		}
		if !strings.Contains(d.body, `"type":"PlacementCancelled","placementId":"p1"`) {
			t.Errorf("%s: got %s", d.path, d.body)
		}
		told[d.path] = true
	}
	for _, args := range [][]string{{"webhook-key", "--data", dir, "everything"}, {"webhook-key", "--data", dir + "x", "events"}} {
		if out, err := runForTest(t, nil, args...); err == nil {
			t.Errorf("%v: no error; printed %s", args, out)
		}
	}
}
