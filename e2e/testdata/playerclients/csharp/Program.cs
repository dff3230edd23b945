// A client of the player API whose calls NSwag has made of the OpenAPI 3.0 document: a login, a party and a search.
using System;
using System.Linq;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Threading.Tasks;
using Muster.PlayerFlow;

static class Program
{
    static int Main()
    {
        try
        {
            Play().GetAwaiter().GetResult();
        }
        catch (Exception e)
        {
            Console.Error.WriteLine(e);
            return 1;
        }
        Console.WriteLine("ok");
        return 0;
    }

    static void Want(string what, bool ok)
    {
        if (!ok)
            throw new Exception("not so: " + what);
    }

    static async Task Play()
    {
        var http = new HttpClient();
        var client = new PlayerFlowClient(http) { BaseUrl = Environment.GetEnvironmentVariable("MUSTER_URL") };

        var login = await client.Session_LoginAsync(null, null, new LoginRequest { Provider = "dev", Token = "{\"player_id\":\"cleo\"}" });
        Want("a new player is idle", login.Flow.Phase == "IDLE");
        http.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", login.Access_token);
        await client.Session_PollEventsAsync(null, null, new PollRequest { After_seq = 0 });

        var made = await client.Party_CreatePartyAsync(null, null, new CreatePartyRequest());
        Want("the player leads the party", made.Party.Leader_ids.First() == "cleo");

        var search = await client.Matchmaking_EnterMatchmakingAsync(null, null, new EnterMatchmakingRequest { Queue = "duel" });
        Want("the player searches", search.Ticket.Queue == "duel" && search.Flow.Phase == "MATCHMAKING");

        try
        {
            await client.Party_KickPlayerAsync(null, null, new PlayerRequest { Player_id = "nobody" });
            Want("a refusal is an exception", false);
        }
        catch (ApiException<Problem> refused)
        {
            Want("a refusal has a code", refused.StatusCode == 404 && refused.Result.Code == "TARGET_NOT_IN_PARTY");
            Want("an answer says what is left of the rate", refused.Headers.Keys.Any(name => name.ToLowerInvariant() == "ratelimit"));
        }

        var left = await client.Matchmaking_LeaveMatchmakingAsync(null, null, new None());
        Want("the search has ended", left.Flow.Phase == "IN_PARTY");
    }
}
