"""Verification of a server from elsewhere: does it send every visitor the published client?"""
