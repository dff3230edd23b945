package settings

import (
	"errors"
	"fmt"
	"os"

	"github.com/musterhq/muster/internal/domain/flow"
)

// playerFlowFileMax limits the memory for a file that was named by mistake.
const playerFlowFileMax = 1 << 20

// flaggedOption is an option of player flow that also has a flag.
type flaggedOption struct {
	flag, option string
	said         bool // the flag is set
}

func (s Settings) flagsOfPlayerFlow() []flaggedOption {
	d := Defaults()
	return []flaggedOption{
		{"player-logins", "LoginServiceConfig.targetLoginRatePerSecond", s.PlayerLogins != d.PlayerLogins},
		{"players-online", "LoginServiceConfig.targetCcu", s.PlayersOnline != d.PlayersOnline},
		{"player-reconnect", "GameInstanceServiceConfig.reconnect", s.PlayerReconnect != d.PlayerReconnect},
		{"player-reconnect-window", "GameInstanceServiceConfig.reconnectWindow", s.PlayerReconnectWindow != d.PlayerReconnectWindow},
		{"player-direct-create", "GameInstanceServiceConfig.directCreate", s.PlayerDirectCreate != d.PlayerDirectCreate},
		{"player-direct-create", "GameInstanceServiceConfig.directCreateQueue", s.PlayerDirectCreate != d.PlayerDirectCreate},
		{"player-direct-join", "GameInstanceServiceConfig.directJoin", s.PlayerDirectJoin != d.PlayerDirectJoin},
		{"player-penalties", "PenaltyServiceConfig.mode", s.PlayerPenalties != d.PlayerPenalties},
	}
}

// ReadPlayerFlow applies the file of player flow to c, if there is one. An option that a flag also sets is an error, so that
// operators need no rule of precedence. It reports all mistakes at once.
func (s Settings) ReadPlayerFlow(c *flow.Config) error {
	if c == nil || s.PlayerFlowConfig == "" {
		return nil
	}
	document, err := s.playerFlowFile()
	if err != nil {
		return err
	}
	x, wrong := c.With(document)
	var errs []error
	for _, fault := range wrong {
		errs = append(errs, fmt.Errorf("%s: %w", s.PlayerFlowConfig, fault))
	}
	for _, both := range s.flagsOfPlayerFlow() {
		for _, o := range flow.Options() {
			if o.Path() == both.option && both.said && flow.Says(document, &o) {
				errs = append(errs, fmt.Errorf("%s: %s: the flag or setting %s sets it as well; want one of them", s.PlayerFlowConfig, both.option, both.flag))
			}
		}
	}
	if len(errs) == 0 {
		*c = x
	}
	return errors.Join(errs...)
}

func (s Settings) playerFlowFile() (string, error) {
	info, err := os.Stat(s.PlayerFlowConfig)
	if err == nil && info.Size() > playerFlowFileMax {
		return "", fmt.Errorf("player-flow-config: %s has %d bytes, want at most %d", s.PlayerFlowConfig, info.Size(), playerFlowFileMax)
	}
	content, err := os.ReadFile(s.PlayerFlowConfig)
	if err != nil {
		return "", fmt.Errorf("player-flow-config: %w", err)
	}
	return string(content), nil
}

// PlayerFlowOption is an option of player flow with the value at the start of the service.
type PlayerFlowOption struct{ Name, Value, From string }

// PlayerFlowOptions returns all options in the order of docs/spec/player-api.md#options, and the mistakes in the file.
func (s Settings) PlayerFlowOptions() (all []PlayerFlowOption, err error) {
	c := s.playerFlow()
	if c == nil {
		return nil, nil
	}
	document := ""
	if err = s.ReadPlayerFlow(c); err == nil && s.PlayerFlowConfig != "" {
		document, err = s.playerFlowFile()
	}
	for _, o := range flow.Options() {
		from := "default"
		for _, flag := range s.flagsOfPlayerFlow() {
			if flag.option == o.Path() && flag.said {
				from = flag.flag
			}
		}
		if document != "" && flow.Says(document, &o) {
			from = s.PlayerFlowConfig
		}
		all = append(all, PlayerFlowOption{o.Path(), fmt.Sprint(o.Value(c)), from})
	}
	for _, q := range c.Queues {
		all = append(all, PlayerFlowOption{"queues", q.Document(), s.PlayerFlowConfig})
	}
	return all, err
}
