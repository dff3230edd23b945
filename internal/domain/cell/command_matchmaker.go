package cell

import (
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// CreateRuleSet makes a rule set. Whether it is one was found out by compiling it, which can take a while: that is the
// caller's part.
type CreateRuleSet struct {
	RuleSet  matchmaking.RuleSet // all but Created
	Compiled *ruleset.RuleSet

	// Result: RuleSet as it is stored.
}

func (cmd *CreateRuleSet) decide(t *tx) error {
	x := &cmd.RuleSet
	if _, ok := t.c.matchmaking.RuleSet(x.Name); ok {
		return domain.Refuse(domain.Invalid, "Name: rule set %s exists already", x.Name)
	}
	if n := t.c.matchmaking.RuleSets.Len(); n >= t.c.config.RuleSetsMax {
		return domain.Refuse(domain.LimitExceeded, "%d rule sets exist; the limit is %d", n, t.c.config.RuleSetsMax)
	}
	tags, err := t.tagged(RuleSetResource, nil, x.Tags)
	if err != nil {
		return err
	}
	x.Tags, x.Created = tags, t.now
	t.c.matchmaking.KeepCompiled(x.Name, cmd.Compiled)
	t.emit(&RuleSetChanged{*x})
	return nil
}

// DeleteRuleSet removes a rule set that no configuration uses.
type DeleteRuleSet struct{ Name string }

func (cmd *DeleteRuleSet) decide(t *tx) error {
	if _, ok := t.c.matchmaking.RuleSet(cmd.Name); !ok {
		return domain.Refuse(domain.NotFound, "rule set %s not found", cmd.Name)
	}
	if by, ok := t.c.matchmaking.UsesRuleSet(cmd.Name); ok {
		return domain.Refuse(domain.Invalid, "Name: rule set %s is in use by matchmaking configuration %s", cmd.Name, by)
	}
	t.emit(&RuleSetRemoved{cmd.Name})
	return nil
}

// CreateConfiguration makes a matchmaking configuration.
type CreateConfiguration struct {
	Configuration matchmaking.Configuration // all but Created and Version

	// Result: Configuration as it is stored.
}

func (cmd *CreateConfiguration) decide(t *tx) error {
	x := &cmd.Configuration
	if _, ok := t.c.matchmaking.Configuration(x.Name); ok {
		return domain.Refuse(domain.Invalid, "Name: matchmaking configuration %s exists already", x.Name)
	}
	if n := t.c.matchmaking.Configurations.Len(); n >= t.c.config.MatchmakersMax {
		return domain.Refuse(domain.LimitExceeded, "%d matchmaking configurations exist; the limit is %d", n, t.c.config.MatchmakersMax)
	}
	if err := t.checkConfiguration(x); err != nil {
		return err
	}
	if err := t.checkQueues(x.Queues); err != nil {
		return err
	}
	tags, err := t.tagged(ConfigurationResource, nil, x.Tags)
	if err != nil {
		return err
	}
	x.Tags, x.Created, x.Version = tags, t.now, 1
	t.emit(&ConfigurationChanged{*x})
	return nil
}

// Bounds of a configuration's times. Source: the API model.
const (
	requestTimeoutMax    = 43_200 * time.Second
	acceptanceTimeoutMax = 600 * time.Second
)

// checkConfiguration checks a configuration as it is to be. Source of what excludes what:
// docs/spec/flexmatch.md#configurations; see B110.
func (t *tx) checkConfiguration(x *matchmaking.Configuration) error {
	if _, ok := t.c.matchmaking.RuleSet(x.RuleSet); !ok {
		return domain.Refuse(domain.NotFound, "RuleSetName: rule set %s not found", x.RuleSet)
	}
	switch {
	case x.RequestTimeout < time.Second || x.RequestTimeout > requestTimeoutMax:
		return domain.Refuse(domain.Invalid, "RequestTimeoutSeconds: %d, want 1 to 43200", x.RequestTimeout/time.Second)
	case x.AcceptanceRequired && x.AcceptanceTimeout == 0:
		return domain.Refuse(domain.Invalid, "AcceptanceTimeoutSeconds: required, because AcceptanceRequired is true")
	case x.AcceptanceTimeout < 0 || x.AcceptanceTimeout > acceptanceTimeoutMax:
		return domain.Refuse(domain.Invalid, "AcceptanceTimeoutSeconds: %d, want 1 to 600", x.AcceptanceTimeout/time.Second)
	case x.Standalone && len(x.Queues) > 0:
		return domain.Refuse(domain.Invalid, "GameSessionQueueArns: not allowed, because FlexMatchMode is STANDALONE")
	case x.Standalone && x.AutoBackfill:
		return domain.Refuse(domain.Invalid, "BackfillMode: AUTOMATIC needs a queue, and FlexMatchMode is STANDALONE")
	case !x.Standalone && len(x.Queues) == 0:
		return domain.Refuse(domain.Invalid, "GameSessionQueueArns: required, because FlexMatchMode is WITH_QUEUE")
	case x.AdditionalPlayers < 0:
		return domain.Refuse(domain.Invalid, "AdditionalPlayerCount: %d is less than 0", x.AdditionalPlayers)
	}
	return t.checkProperties(x.Properties)
}

// checkQueues checks the queues that are given now. One that was given before may be gone.
func (t *tx) checkQueues(arns []string) error {
	for i, arn := range arns {
		if name := queueName(arn); !t.c.hasQueue(name) {
			return domain.Refuse(domain.NotFound, "GameSessionQueueArns[%d]: queue %s not found", i, name)
		}
	}
	return nil
}

func (c *Cell) hasQueue(name string) bool {
	_, ok := c.placements.Queue(name)
	return ok
}

// queueName is the last part of a queue's ARN, or what is a name already.
func queueName(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

// UpdateConfiguration changes what is given and keeps the rest.
type UpdateConfiguration struct {
	Name               string
	Description        *string
	RuleSet            *string
	RequestTimeout     *time.Duration
	AcceptanceTimeout  *time.Duration
	AcceptanceRequired *bool
	Standalone         *bool
	Queues             *[]string
	AdditionalPlayers  *int32
	AutoBackfill       *bool
	Properties         *[]keyvalue.Pair
	Data               *string
	NotificationTarget *string
	CustomEventData    *string

	// Result
	Configuration matchmaking.Configuration
}

func (cmd *UpdateConfiguration) decide(t *tx) error {
	now, ok := t.c.matchmaking.Configuration(cmd.Name)
	if !ok {
		return domain.Refuse(domain.NotFound, "matchmaking configuration %s not found", cmd.Name)
	}
	x := *now
	set(&x.Description, cmd.Description)
	set(&x.RuleSet, cmd.RuleSet)
	set(&x.RequestTimeout, cmd.RequestTimeout)
	set(&x.AcceptanceTimeout, cmd.AcceptanceTimeout)
	set(&x.AcceptanceRequired, cmd.AcceptanceRequired)
	set(&x.Standalone, cmd.Standalone)
	set(&x.Queues, cmd.Queues)
	set(&x.AdditionalPlayers, cmd.AdditionalPlayers)
	set(&x.AutoBackfill, cmd.AutoBackfill)
	set(&x.Properties, cmd.Properties)
	set(&x.Data, cmd.Data)
	set(&x.NotificationTarget, cmd.NotificationTarget)
	set(&x.CustomEventData, cmd.CustomEventData)
	if x.Standalone && cmd.Queues == nil {
		x.Queues = nil // they meant something in the other mode only
	}
	if err := t.checkConfiguration(&x); err != nil {
		return err
	}
	if cmd.Queues != nil {
		if err := t.checkQueues(*cmd.Queues); err != nil {
			return err
		}
	}
	if x.RuleSet != now.RuleSet {
		x.Version++
	}
	t.emit(&ConfigurationChanged{x})
	cmd.Configuration = x
	return nil
}

// DeleteConfiguration removes a configuration that no active ticket is in.
type DeleteConfiguration struct{ Name string }

func (cmd *DeleteConfiguration) decide(t *tx) error {
	if _, ok := t.c.matchmaking.Configuration(cmd.Name); !ok {
		return domain.Refuse(domain.NotFound, "matchmaking configuration %s not found", cmd.Name)
	}
	if n := t.c.matchmaking.Counts(cmd.Name).Active; n > 0 {
		return domain.Refuse(domain.Invalid, "Name: %d tickets are active in matchmaking configuration %s", n, cmd.Name)
	}
	t.emit(&ConfigurationRemoved{cmd.Name})
	return nil
}
