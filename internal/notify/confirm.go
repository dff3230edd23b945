package notify

import (
	"encoding/xml"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/signin"
)

// ConfirmPath is the path at which receivers confirm their subscription to a topic, by opening the URL that was sent to them.
const ConfirmPath = "/sns/"

type confirmAnswer struct {
	XMLName         xml.Name `xml:"http://sns.amazonaws.com/doc/2010-03-31/ ConfirmSubscriptionResponse"`
	SubscriptionARN string   `xml:"ConfirmSubscriptionResult>SubscriptionArn"`
	RequestID       string   `xml:"ResponseMetadata>RequestId"`
}

// ServeHTTP accepts a confirmation. Its token was sent only to the receiver, so a client that has it is the receiver, or got it
// from the operator.
func (s *Sender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if action := query.Get("Action"); action != "ConfirmSubscription" {
		http.Error(w, "Action: want ConfirmSubscription", http.StatusBadRequest)
		return
	}
	for _, x := range s.receivers {
		if x.topic == "" || x.topic != query.Get("TopicArn") {
			continue
		}
		if !s.config.Confirms(x.topic, x.url, query.Get("Token")) {
			break
		}
		if err := s.config.Engine.Do(r.Context(), &notice.ConfirmSubscription{Topic: x.topic, URL: x.url}); err != nil {
			s.config.Log.Error("the confirmation of a subscription could not be saved", "topic", x.topic, "error", err)
			http.Error(w, "the subscription was not confirmed; try again", http.StatusServiceUnavailable)
			return
		}
		body, err := xml.Marshal(confirmAnswer{SubscriptionARN: x.subscriptionARN(), RequestID: uuid.NewString()})
		if err != nil {
			panic("notify: " + err.Error()) // strings always marshal
		}
		w.Header().Set("Content-Type", "text/xml")
		_, _ = w.Write(body) // an error means that the receiver has gone
		return
	}
	if slow := s.config.Signins.Fail(signin.Failure{From: s.config.Proxies.Of(r), Reason: signin.WrongToken}); slow != nil {
		w.Header().Set("Retry-After", strconv.Itoa(slow.Seconds()))
		http.Error(w, slow.Error(), http.StatusTooManyRequests)
		return
	}
	http.Error(w, "TopicArn or Token is unknown: open the SubscribeURL of the latest confirmation request", http.StatusForbidden)
}
