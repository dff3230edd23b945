package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// A key may do everything except with one fleet, from one network, and to resources with a tag. It tries other names of the fleet, forges tags and addresses, and
// assumes roles.
func TestAttackAroundAPolicy(t *testing.T) {
	t.Parallel()
	p, admin, _, _ := productionPlace(t)
	ctx := t.Context()
	_, err := admin.TagResource(ctx, &gamelift.TagResourceInput{ResourceARN: aws.String("arn:aws:gamelift:us-east-1:000000000000:fleet/" + p.fleet), Tags: []types.Tag{{Key: aws.String("env"), Value: aws.String("prod")}}})
	must(t, err)
	alias, err := admin.CreateAlias(ctx, &gamelift.CreateAliasInput{Name: aws.String("live"), RoutingStrategy: &types.RoutingStrategy{Type: types.RoutingStrategyTypeSimple, FleetId: &p.fleet}})
	must(t, err)
	id, secret := p.key("admin")
	p.policies("create", "guard", law(t,
		statement("Allow", "*", "*"),
		statement("Deny", "GAMELIFT:createGAMEsession gamelift:delete* gamelift:Update*", "arn:aws:gamelift:*:*:fleet/"+p.fleet),
		statement("Deny", "gamelift:StopFleetActions", "*", `,"Condition":{"StringEquals":{"aws:ResourceTag/env":"prod"}}`),
		statement("Deny", "gamelift:ListBuilds", "*", `,"Condition":{"NotIpAddress":{"aws:SourceIp":"198.51.100.0/24"}}`)))
	p.policies("attach", "guard", id)

	client := func(region string, c aws.Credentials, headers ...string) *gamelift.Client {
		return gamelift.New(gamelift.Options{Region: region, BaseEndpoint: aws.String(p.url()), RetryMaxAttempts: 1, Credentials: credentials.StaticCredentialsProvider{Value: c}},
			func(o *gamelift.Options) {
				o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
					return stack.Build.Add(middleware.BuildMiddlewareFunc("headers", func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
						for i := 0; i+1 < len(headers); i += 2 {
							in.Request.(*smithyhttp.Request).Header.Set(headers[i], headers[i+1])
						}
						return next.HandleBuild(ctx, in)
					}), middleware.After)
				})
			})
	}
	key := aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}
	session := p.assume(id, secret, "backend", "elsewhere")
	for what, c := range map[string]*gamelift.Client{"key": client(region, key), "key, in another region": client("mars-1", key), "role": client(region, session)} {
		for name, in := range map[string]*gamelift.CreateGameSessionInput{
			"id": {FleetId: &p.fleet}, "an ARN of another account": {FleetId: aws.String("arn:aws:gamelift:mars-1:999999999999:fleet/" + p.fleet)},
			"alias": {AliasId: alias.Alias.AliasId}, "the alias's ARN": {AliasId: alias.Alias.AliasArn},
		} {
			in.Location, in.MaximumPlayerSessionCount = &p.location, aws.Int32(2)
			_, err := c.CreateGameSession(ctx, in)
			refused(t, what+" with "+name, err, "AccessDeniedException")
		}
	}
	_, err = client(region, key).DeleteFleet(ctx, &gamelift.DeleteFleetInput{FleetId: &p.fleet})
	refused(t, "a prefix in lower case", err, "AccessDeniedException")
	// The tags of the request are not those of the resource.
	_, err = client(region, key).TagResource(ctx, &gamelift.TagResourceInput{ResourceARN: aws.String("arn:aws:gamelift:us-east-1:000000000000:fleet/" + p.fleet), Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("x")}}})
	must(t, err)
	_, err = client(region, key).StopFleetActions(ctx, &gamelift.StopFleetActionsInput{FleetId: &p.fleet, Actions: []types.FleetAction{types.FleetActionAutoScaling}})
	refused(t, "a tagged fleet", err, "AccessDeniedException")
	for _, headers := range [][]string{nil, {"X-Forwarded-For", "198.51.100.7"}, {"X-Real-Ip", "198.51.100.7"}, {"Forwarded", "for=198.51.100.7"}} {
		_, err := client(region, key, headers...).ListBuilds(ctx, &gamelift.ListBuildsInput{})
		refused(t, "from another network, with "+strings.Join(headers, ": "), err, "AccessDeniedException")
	}
	_, err = client(region, key).ListFleets(ctx, &gamelift.ListFleetsInput{})
	must(t, err)
}

// Documents that are too large, too deep or unknown are refused at both doors, and change nothing. A policy that locks out every administrator can be detached with the data
// directory.
func TestAttackPoliciesThatLockOut(t *testing.T) {
	t.Parallel()
	p, admin, id, secret := productionPlace(t)
	h := &holder{place: p, t: t, id: id, secret: secret}
	bad := map[string]string{
		"large":      `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":["` + strings.Repeat("arn:aws:gamelift:*:*:fleet/a\",\"", 400) + `*"]}]}`,
		"deep":       strings.Repeat(`{"Statement":`, 5000) + `1` + strings.Repeat(`}`, 5000),
		"a list":     strings.Repeat(`[`, 8000),
		"an unknown": `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"*","NotResource":"*"}]}`,
		"twice":      `{"Version":"2012-10-17","Statement":[],"Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`,
	}
	for what, document := range bad {
		path := filepath.Join(t.TempDir(), "bad.json")
		must(t, os.WriteFile(path, []byte(document), 0o600))
		if out, err := p.commandFails("policies", "create", "--data", p.data, "bad", path); err == nil {
			t.Errorf("%s: created: %s", what, out)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url()+"/operator/v1/policies", strings.NewReader(`{"name":"bad","document":`+document+`}`))
		must(t, err)
		r.Header.Set("Content-Type", "application/json")
		if got := h.answer(http.DefaultClient, r); strings.HasPrefix(got, "2") { // not signed, so refused whatever it says
			t.Errorf("%s over the network: %.200s", what, got)
		}
	}
	if out := p.policies("list"); strings.Contains(out, "bad") {
		t.Errorf("policies: %s", out)
	}

	p.policies("create", "nothing", law(t, statement("Deny", "*", "*")))
	if out := h.muster("policies", "attach", "nothing", "role:admin"); !strings.Contains(out, "in force") {
		t.Fatal(out)
	}
	if out := h.muster("policies", "detach", "nothing", "role:admin"); !strings.Contains(out, "not authorized") {
		t.Errorf("a locked out administrator detaches the policy: %s", out)
	}
	other, otherSecret := p.key("admin")
	refused(t, "a new administrator", p.lists(aws.Credentials{AccessKeyID: other, SecretAccessKey: otherSecret}), "AccessDeniedException")
	p.kill()
	p.start()
	refused(t, "after a crash", p.lists(aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}), "AccessDeniedException")
	p.policies("detach", "nothing", "role:admin")
	_, err := admin.ListFleets(t.Context(), &gamelift.ListFleetsInput{})
	must(t, err)
}
