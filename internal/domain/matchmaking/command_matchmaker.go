package matchmaking

import (
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// CreateRuleSet creates a rule set. The caller has already compiled it, because that can take long, and has refused an invalid
// one.
type CreateRuleSet struct {
	RuleSet  RuleSet          // all but Created
	Compiled *ruleset.RuleSet `cbor:"-"` // not sent to other nodes, which compile it themselves

	// Result: RuleSet, as stored.
}

// Hold implements quota.Taker.
func (cmd *CreateRuleSet) Hold(h quota.Holder) { cmd.RuleSet.Holder = h }

func (cmd *CreateRuleSet) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	x := &cmd.RuleSet
	if _, ok := t.Records.RuleSet(x.Name); ok {
		return domain.Refuse(domain.Invalid, "Name: rule set %s exists already", x.Name)
	}
	if n := t.Records.RuleSets.Len(); n >= t.Config.RuleSetsMax {
		return domain.Refuse(domain.LimitExceeded, "%d rule sets exist; the limit is %d", n, t.Config.RuleSetsMax)
	}
	if err := t.Take(quota.RuleSets, t.Records.RuleSetsHeld(), &x.Holder, t.Config.RuleSetsMax); err != nil {
		return err
	}
	tags, err := t.hosting.Tagged(nil, nil, x.Tags)
	if err != nil {
		return err
	}
	x.Tags, x.Created = tags, t.Now
	t.Records.KeepCompiled(x.Name, cmd.Compiled)
	t.Emit(&RuleSetChanged{*x})
	return nil
}

// DeleteRuleSet removes a rule set that no configuration uses.
type DeleteRuleSet struct{ Name string }

func (cmd *DeleteRuleSet) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if _, ok := t.Records.RuleSet(cmd.Name); !ok {
		return domain.Refuse(domain.NotFound, "rule set %s not found", cmd.Name)
	}
	if by, ok := t.Records.UsesRuleSet(cmd.Name); ok {
		return domain.Refuse(domain.Invalid, "Name: rule set %s is in use by matchmaking configuration %s", cmd.Name, by)
	}
	t.Emit(&RuleSetRemoved{cmd.Name})
	return nil
}

type CreateConfiguration struct {
	Configuration Configuration // all but Created and Version

	// Result: Configuration, as stored.
}

// Hold implements quota.Taker.
func (cmd *CreateConfiguration) Hold(h quota.Holder) { cmd.Configuration.Holder = h }

func (cmd *CreateConfiguration) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	x := &cmd.Configuration
	if _, ok := t.Records.Configuration(x.Name); ok {
		return domain.Refuse(domain.Invalid, "Name: matchmaking configuration %s exists already", x.Name)
	}
	if n := t.Records.Configurations.Len(); n >= t.Config.MatchmakersMax {
		return domain.Refuse(domain.LimitExceeded, "%d matchmaking configurations exist; the limit is %d", n, t.Config.MatchmakersMax)
	}
	if err := t.Take(quota.Configurations, t.Records.ConfigurationsHeld(), &x.Holder, t.Config.MatchmakersMax); err != nil {
		return err
	}
	if err := t.checkConfiguration(x); err != nil {
		return err
	}
	if err := t.checkQueues(x.Queues); err != nil {
		return err
	}
	tags, err := t.hosting.Tagged(ownConfigurationTags, nil, x.Tags)
	if err != nil {
		return err
	}
	x.Tags, x.Created, x.Version = tags, t.Now, 1
	t.Emit(&ConfigurationChanged{*x})
	return nil
}

// Bounds of a configuration's times. Source: the API model.
const (
	requestTimeoutMax    = 43_200 * time.Second
	acceptanceTimeoutMax = 600 * time.Second
)

// checkConfiguration checks a complete configuration. Source of the combinations: docs/spec/flexmatch.md#configurations; see B110.
func (t *Tx) checkConfiguration(x *Configuration) error {
	if _, ok := t.Records.RuleSet(x.RuleSet); !ok {
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
	return t.hosting.CheckProperties(x.Properties)
}

// checkQueues checks new queues. One that was stored before may be gone.
func (t *Tx) checkQueues(arns []string) error {
	for i, arn := range arns {
		if name := queueName(arn); !t.HasQueue(name) {
			return domain.Refuse(domain.NotFound, "GameSessionQueueArns[%d]: queue %s not found", i, name)
		}
	}
	return nil
}

func (c *State) HasQueue(name string) bool {
	_, ok := c.hosting.FindQueue(name)
	return ok
}

// queueName returns the last part of a queue's ARN, or a name as it is.
func queueName(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

// UpdateConfiguration changes the given fields and keeps the others.
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
	Configuration Configuration
}

func (cmd *UpdateConfiguration) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	now, ok := t.Records.Configuration(cmd.Name)
	if !ok {
		return domain.Refuse(domain.NotFound, "matchmaking configuration %s not found", cmd.Name)
	}
	x := *now
	kernel.Patch(&x.Description, cmd.Description)
	kernel.Patch(&x.RuleSet, cmd.RuleSet)
	kernel.Patch(&x.RequestTimeout, cmd.RequestTimeout)
	kernel.Patch(&x.AcceptanceTimeout, cmd.AcceptanceTimeout)
	kernel.Patch(&x.AcceptanceRequired, cmd.AcceptanceRequired)
	kernel.Patch(&x.Standalone, cmd.Standalone)
	kernel.Patch(&x.Queues, cmd.Queues)
	kernel.Patch(&x.AdditionalPlayers, cmd.AdditionalPlayers)
	kernel.Patch(&x.AutoBackfill, cmd.AutoBackfill)
	kernel.Patch(&x.Properties, cmd.Properties)
	kernel.Patch(&x.Data, cmd.Data)
	kernel.Patch(&x.NotificationTarget, cmd.NotificationTarget)
	kernel.Patch(&x.CustomEventData, cmd.CustomEventData)
	if x.Standalone && cmd.Queues == nil {
		x.Queues = nil // only the other mode uses them
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
	t.Emit(&ConfigurationChanged{x})
	cmd.Configuration = x
	return nil
}

// DeleteConfiguration removes a configuration without active tickets.
type DeleteConfiguration struct{ Name string }

func (cmd *DeleteConfiguration) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if _, ok := t.Records.Configuration(cmd.Name); !ok {
		return domain.Refuse(domain.NotFound, "matchmaking configuration %s not found", cmd.Name)
	}
	if n := t.Records.Counts(cmd.Name).Active; n > 0 {
		return domain.Refuse(domain.Invalid, "Name: %d tickets are active in matchmaking configuration %s", n, cmd.Name)
	}
	t.Emit(&ConfigurationRemoved{cmd.Name})
	return nil
}
