package main

import (
	"strings"
	"time"
)

type stsCredentials struct {
	AccessKeyId, SecretAccessKey, SessionToken, Expiration string
}

func assumeRole(d *awsDoor, c *awsCall) (any, *awsError) {
	role, session, token := c.form.Get("RoleArn"), c.form.Get("RoleSessionName"), c.form.Get("WebIdentityToken")
	arn := "arn:aws:iam::" + d.conf.Account + ":role/" + d.conf.Role
	switch {
	case len(role) < 20:
		return nil, bad("1 validation error detected: Value '%s' at 'roleArn' failed to satisfy constraint: Member must have "+
			"length greater than or equal to 20", role)
	case session == "":
		return nil, missing("RoleSessionName")
	case strings.TrimSpace(token) == d.conf.WebIdentityToken+".expired":
		return nil, &awsError{400, "ExpiredTokenException", "Token expired: current date/time " +
			stamp(time.Now().UnixMilli()) + " must be before the expiration date/time"}
	case token != d.conf.WebIdentityToken:
		return nil, &awsError{400, "InvalidIdentityToken", "Couldn't retrieve verification key from your identity provider"}
	case role != arn:
		return nil, &awsError{403, "AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity"}
	}
	t := d.issue(session, time.Now())
	type user struct{ AssumedRoleId, Arn string }
	return struct {
		SubjectFromWebIdentityToken string
		Audience                    string
		AssumedRoleUser             user
		Credentials                 stsCredentials
		Provider                    string
	}{"system:serviceaccount:preheat:preheat", "sts.amazonaws.com", user{t.userID, t.arn},
		stsCredentials{t.keyID, t.secret, t.token, stamp(t.expires.UnixMilli())}, "arn:aws:iam::" + d.conf.Account +
			":oidc-provider/oidc.eks." + d.conf.Region + ".amazonaws.com/id/EXAMPLE"}, nil
}

func callerIdentity(d *awsDoor, c *awsCall) (any, *awsError) {
	return struct{ UserId, Account, Arn string }{c.caller.userID, d.conf.Account, c.caller.arn}, nil
}
