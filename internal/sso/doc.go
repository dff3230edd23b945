// Package sso is the door at which the AWS CLI and the SDKs sign a person in, and get temporary credentials for the person: SSO-OIDC and the SSO portal of AWS
// IAM Identity Center, as far as they use them.
//
//	POST /client/register          RegisterClient: a program says its name and how it wants to sign in
//	POST /device_authorization     StartDeviceAuthorization: it has no browser, and shows a code
//	GET  /device                   where a person compares the code, and approves the program
//	GET  /authorize                where a person approves a program on the same machine, to whose loopback address the browser goes back
//	POST /token                    CreateToken: for a device code, an authorization code with PKCE, or a refresh token
//	GET  /assignment/accounts      ListAccounts, ListAccountRoles, GetRoleCredentials, Logout, with the access token in a header
//	GET  /assignment/roles
//	GET  /federation/credentials
//	POST /logout
//
// # What holds a sign-in together
//
// Clients, codes and tokens are claims signed by the cell (sealed.go), which every node can check alone, so strangers cannot make the state grow with
// them. The room grants of the state has the requests of devices, because a person types their codes, and the used authorization codes, so that none
// works twice anywhere. All tokens name the sign-in session of the person who approved the program, and are valid only as long as that session. Its
// end invalidates them and all temporary credentials at once. If a code is used twice, it was stolen, so its session ends.
//
// Another package determines who a person is and what the person's groups allow (People).
package sso
