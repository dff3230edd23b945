package notify

import (
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/domain/notice"
)

// message is one POST to a receiver.
type message struct {
	body   []byte
	header http.Header
}

// busMessage returns an event as the bus sends it to a webhook.
func busMessage(event []byte) message {
	return message{event, http.Header{"Content-Type": {"application/json"}}}
}

// topicNotification is the body that topics send. Receivers that check its signature require a certificate of the cloud
// service: the last four members exist only for parsers that require them. Our signature is a header.
type topicNotification struct {
	Type             string
	MessageID        string `json:"MessageId"`
	TopicARN         string `json:"TopicArn"`
	Message          string
	Timestamp        string
	SignatureVersion string
	Signature        string
	SigningCertURL   string
	UnsubscribeURL   string
}

// topicConfirmation asks a receiver to confirm its subscription to a topic, by opening SubscribeURL.
type topicConfirmation struct {
	Type             string
	MessageID        string `json:"MessageId"`
	Token            string
	TopicARN         string `json:"TopicArn"`
	Message          string
	SubscribeURL     string
	Timestamp        string
	SignatureVersion string
	Signature        string
	SigningCertURL   string
}

func (r *receiver) notification(n *notice.Notice, event []byte) message {
	id := n.ID.String()
	m := message{encode(topicNotification{
		Type: "Notification", MessageID: id, TopicARN: r.topic, Message: string(event), Timestamp: milliseconds(n.At), SignatureVersion: "1",
	}), r.topicHeader("Notification", id)}
	m.header["X-Amz-Sns-Subscription-Arn"] = []string{r.subscriptionARN()}
	return m
}

func (r *receiver) subscriptionARN() string {
	return r.topic + ":" + uuid.NewSHA1(uuid.NameSpaceURL, []byte(r.topic+" "+r.url)).String()
}

func (r *receiver) confirmation(now time.Time) message {
	id, token := uuid.NewString(), r.sender.config.Token(r.topic, r.url)
	return message{encode(topicConfirmation{
		Type: "SubscriptionConfirmation", MessageID: id, Token: token, TopicARN: r.topic,
		Message:      "You have chosen to subscribe to the topic " + r.topic + ".\nTo confirm the subscription, visit the SubscribeURL included in this message.",
		SubscribeURL: r.subscribeURL(token), Timestamp: now.UTC().Format("2006-01-02T15:04:05.000Z"), SignatureVersion: "1",
	}), r.topicHeader("SubscriptionConfirmation", id)}
}

func (r *receiver) subscribeURL(token string) string {
	return r.sender.config.ConfirmAt + "?" + url.Values{"Action": {"ConfirmSubscription"}, "TopicArn": {r.topic}, "Token": {token}}.Encode()
}

func (r *receiver) topicHeader(kind, id string) http.Header {
	return http.Header{
		"Content-Type":           {"text/plain; charset=UTF-8"}, // the Content-Type that topics send, although the body is JSON
		"X-Amz-Sns-Message-Type": {kind},
		"X-Amz-Sns-Message-Id":   {id},
		"X-Amz-Sns-Topic-Arn":    {r.topic},
	}
}
