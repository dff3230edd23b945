package settings

import (
	"regexp"
	"strings"

	"github.com/musterhq/muster/internal/webhook"
)

// Shown returns the printable value of a setting. It reduces the URLs of receivers of notifications to their hosts, because many
// of their paths are secret. Other URLs lose their password and query.
func Shown(name, value string) string {
	switch name {
	case "join":
		if value != "" {
			return "…"
		}
		return ""
	case "notify-events":
		return shownReceiver(value)
	case "notify-topics":
		words := strings.Fields(value)
		for i, word := range words {
			if arn, to, ok := strings.Cut(word, "="); ok {
				words[i] = arn + "=" + shownReceiver(to)
			} else {
				words[i] = shownReceiver(word)
			}
		}
		return strings.Join(words, " ")
	}
	value = password.ReplaceAllString(value, "://…@")
	if strings.Contains(value, "://") {
		value = query.ReplaceAllString(value, "?…")
	}
	return value
}

var (
	password = regexp.MustCompile(`://\S*@`)
	query    = regexp.MustCompile(`\?\S*`)
)

// shownReceiver hides a text that is not a URL: it may be a mistyped URL with a secret.
func shownReceiver(text string) string {
	switch {
	case text == "":
		return ""
	case strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://"):
		return webhook.PlainURL(text)
	}
	return "…"
}
